"""Who guards an MCP server: which authorisation server gives tokens for it, as the two of them say.

Discovery and registration by the parts of the official client (RFC 9728, 8414, 7591 and OpenID discovery);
what they say is held against where it was found, and each address against the rules for MCP servers. It
knows no tables. Heavy, for the official client.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx2
from django.utils.translation import gettext as _
from mcp.client.auth.exceptions import OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    handle_registration_response,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

from harness.errors import AddressRefused, AgentError, Declined, Invalid
from net.guarded import guarded_client
from reading.digits import amount_of
from reading.hostnames import split_address

from .addresses import check_url, judge

SECONDS = 20.0
"""For all of it."""
MOST_BYTES = 256 * 1024
"""Of one document."""
MOST_SCOPE = 2_000
METHODS = ("client_secret_basic", "client_secret_post", "none")
"""How a client may show who it is, the best first."""
GRANTS = ["authorization_code", "refresh_token"]
_PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Unguarded(Declined):
    """Nobody can be connected there; says why, for a person."""

    code = "mcp_authorisation"


@dataclass(frozen=True, slots=True)
class Guard:
    """What is known of an authorisation server, every part of it judged."""

    resource: str
    """What a token is asked for (RFC 8707)."""
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    takes_document: bool
    """A client may be the address of a document about it."""
    names_itself: bool
    """It says in its answers who answers (RFC 9207)."""
    scope: str
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Registered:
    client_id: str
    secret: str
    method: str
    expires_at: float
    """Of the secret, in seconds since 1970; 0: never."""


async def find_guard(url: str) -> Guard:
    """Raises Unguarded."""
    try:
        async with asyncio.timeout(SECONDS), _client() as http:
            return await _find(http, url)
    except TimeoutError:
        raise _refused(_("It did not answer in time.")) from None
    except OAuthFlowError as problem:
        raise _refused(str(problem)[:300]) from None
    except AddressRefused as problem:
        raise _refused(problem.words) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _refused(
            _("It could not be reached: %(why)s") % {"why": str(problem)[:200]}
        ) from None


async def register(guard: Guard, redirect_uri: str) -> Registered:
    """Raises Unguarded."""
    method = next((each for each in METHODS if each in guard.methods), "none")
    ours: Any = {
        "client_name": "Agentsite",
        "redirect_uris": [redirect_uri],
        "token_endpoint_auth_method": method,
        "grant_types": GRANTS,
        "application_type": "web",
        "scope": guard.scope or None,
    }
    asked = OAuthClientMetadata.model_validate(ours)
    body = asked.model_dump(by_alias=True, mode="json", exclude_none=True)
    try:
        async with asyncio.timeout(SECONDS), _client() as http:
            answer = await http.post(guard.registration_endpoint, json=body)
            if answer.status_code not in {200, 201}:
                # Its own words may be those of anything inside this network.
                raise _refused(
                    _("It registered no client (%(code)d).") % {"code": answer.status_code}
                )
            return _registered(await handle_registration_response(answer))
    except TimeoutError:
        raise _refused(_("It did not answer in time.")) from None
    except OAuthRegistrationError:
        raise _refused(_("It registered a client that cannot be used.")) from None
    except AddressRefused as problem:
        raise _refused(problem.words) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _refused(
            _("It could not be reached: %(why)s") % {"why": str(problem)[:200]}
        ) from None


def host_of_endpoint(endpoint: str) -> str:
    return split_address(endpoint).netloc


def _registered(information: OAuthClientInformationFull) -> Registered:
    check_registration_usable(information)
    method = information.token_endpoint_auth_method or "none"
    secret = information.client_secret or ""
    if method == "none":
        secret = ""
    plain = information.client_id.isascii() and information.client_id.isprintable()
    if method not in METHODS or not plain or not 1 <= len(information.client_id) <= 2_000:
        raise OAuthRegistrationError("it registered a client that cannot be used")
    if len(secret) > 8_192 or not all("!" <= sign <= "~" for sign in secret):
        raise OAuthRegistrationError("it gave a secret that cannot be kept")
    expires_at = amount_of(information.client_secret_expires_at or 0)
    if expires_at is None:
        raise OAuthRegistrationError("it gave a secret that ends at no time")
    return Registered(information.client_id, secret, method, expires_at)


async def _find(http: httpx2.AsyncClient, url: str) -> Guard:
    accept = {"Accept": "application/json, text/event-stream"}
    async with http.stream("POST", url, json=_PROBE, headers=accept) as first:
        pass  # what it says to strangers stands in the headers
    told = extract_resource_metadata_from_www_auth(first)
    wanted = extract_field_from_www_auth(first, "scope") if first.status_code == 401 else None
    resource = await _resource(http, url, told)
    issuer = str(resource.authorization_servers[0]) if resource else None
    metadata = await _metadata(http, url, issuer)
    if metadata is None:
        if first.status_code != 401 or resource is not None:
            raise _refused(_("It does not say who gives tokens for it."))
        metadata = _as_of_old(url)
    elif "S256" not in (metadata.code_challenge_methods_supported or []):
        raise _refused(_("Its authorisation server does not say that it takes PKCE."))
    scope = get_client_metadata_scopes(wanted, resource, metadata, GRANTS) or ""
    if len(scope) > MOST_SCOPE or not scope.isprintable():
        raise _refused(_("It asks for more permissions than can be shown."))
    known = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic", "none"]
    for_this = resource_url_from_server_url(url)
    if resource is not None:
        for_this = str(resource.resource)
    return Guard(
        resource=for_this,
        issuer=str(metadata.issuer),
        authorization_endpoint=_judged(metadata.authorization_endpoint),
        token_endpoint=_judged(metadata.token_endpoint),
        registration_endpoint=_judged(metadata.registration_endpoint),
        revocation_endpoint=_judged(metadata.revocation_endpoint),
        takes_document=metadata.client_id_metadata_document_supported is True,
        names_itself=metadata.authorization_response_iss_parameter_supported is True,
        scope=scope,
        methods=tuple(each for each in known if each in METHODS),
    )


async def _resource(
    http: httpx2.AsyncClient, url: str, told: str | None
) -> ProtectedResourceMetadata | None:
    failed = False
    for place in build_protected_resource_metadata_discovery_urls(told, url):
        answer = await http.send(create_oauth_metadata_request(_judged(place)))
        failed = failed or answer.status_code == 429 or answer.status_code >= 500
        found = await handle_protected_resource_response(answer)
        if found is None:
            continue
        said = str(found.resource)
        if not check_resource_allowed(resource_url_from_server_url(url), said):
            raise _refused(
                _("Its metadata is about another address: %(address)s") % {"address": said[:200]}
            )
        return found
    if failed:
        raise _refused(_("Its metadata could not be read."))
    return None


async def _metadata(http: httpx2.AsyncClient, url: str, issuer: str | None) -> OAuthMetadata | None:
    expected = issuer or _origin(url)
    for place in build_oauth_authorization_server_metadata_discovery_urls(issuer, url):
        answer = await http.send(create_oauth_metadata_request(_judged(place)))
        ok, found = await handle_auth_metadata_response(answer)
        if not ok:
            break
        if found is None:
            continue
        said = str(found.issuer)
        # Where nothing names an issuer, whoever answers at the server's own origin speaks for that origin.
        if said != expected and not (issuer is None and _origin(said) == expected):
            raise _refused(
                _("Metadata at %(place)s is that of another authorisation server, %(said)s.")
                % {"place": expected[:200], "said": said[:200]}
            )
        return found
    return None


def _as_of_old(url: str) -> OAuthMetadata:
    """Servers of the revision 2025-03-26 may have no metadata, and endpoints at fixed places."""
    origin = _origin(url)
    given: Any = {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "registration_endpoint": f"{origin}/register",
    }
    return OAuthMetadata.model_validate(given)


def _origin(url: str) -> str:
    parts = split_address(url)
    return f"{parts.scheme}://{parts.netloc}"


def _judged(url: object) -> str:
    """An address that somebody else named. What it leads to is judged again when it is connected to."""
    if url is None:
        return ""
    try:
        return check_url(str(url))
    except Invalid as problem:
        raise _refused(
            _("It leads to %(address)s. %(why)s")
            % {"address": str(url)[:200], "why": problem.message}
        ) from None


def _client() -> httpx2.AsyncClient:
    return guarded_client(
        judge, timeout=httpx2.Timeout(10.0), seconds=SECONDS, most_bytes=MOST_BYTES
    )


def _refused(why: str) -> AgentError:
    return Unguarded(
        _("Nobody can be connected there. %(why)s") % {"why": why},
        hint=_("Ask who runs the MCP server, or store a token of it as a header."),
    )
