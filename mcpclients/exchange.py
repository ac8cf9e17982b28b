"""Codes and refresh tokens for access tokens, and their end: OAuth 2.1 by `oauthlib`, over rows of ours.

What the library asks is answered here; which requests it is given, and what becomes of its answers, is
`views`'. A secret that comes back after it was used ends what its client may: somebody has a copy.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from oauthlib.common import Request
from oauthlib.oauth2 import (
    AuthorizationCodeGrant,
    BearerToken,
    RefreshTokenGrant,
    RequestValidator,
    RevocationEndpoint,
    TokenEndpoint,
)
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, InvalidRequestError
from oauthlib.oauth2.rfc6749.grant_types.authorization_code import code_challenge_method_s256

from accounts.actions.tokens import revoke_each
from accounts.models import ApiToken
from accounts.tokens import hash_token, new_token
from reading.linear import linear

from . import assertions
from .models import Connection, McpClient
from .redirects import fits
from .scopes import USUAL, known_among

ACCESS_PREFIX = "agm_"
"""How every access token begins, so that no other door looks one up, and scanners know one."""
REFRESH_PREFIX = "agn_"
ACCESS_SECONDS = 3600
LONGEST_SECRET = 200
_HERE = "https://oauth.invalid/"
"""The library wants an address and looks at nothing of it but the query."""
_CHALLENGE = linear(r"[A-Za-z0-9_-]{43}")
"""SHA-256 in base64url: the one method there is."""

Answer = tuple[dict[str, str], str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks a person for, checked."""

    client: McpClient
    redirect_uri: str
    challenge: str
    scopes: list[str]


def read_request(query: str, *, resource: str) -> Asked:
    """An authorisation request. Raises the library's errors: a FatalClientError must not be sent anywhere."""
    request = Request(f"{_HERE}?{query}", headers={})
    _codes(resource).validate_authorization_request(request)
    scopes = [scope.value for scope in known_among(request.scopes)]
    return Asked(request.client, request.redirect_uri, request.code_challenge, scopes)


@transaction.atomic
@sensitive_variables()
def exchange(body: str, *, resource: str, places: Sequence[str]) -> Answer:
    """Of the token endpoint: headers, body and status. What an abuse ended stays ended. A client that signs
    does so for one of `places`."""
    codes, validator = _codes(resource, places), _Validator(places)
    renewals = RefreshTokenGrant(validator)
    renewals.custom_validators.pre_token.append(_for(resource))
    bearer = BearerToken(validator, _new_access, _seconds_left, _new_refresh)
    kinds = {"authorization_code": codes, "refresh_token": renewals}
    endpoint = TokenEndpoint("authorization_code", bearer, kinds)
    headers, text, status = endpoint.create_token_response(_HERE, "POST", body, {})
    return headers, text, status


@transaction.atomic
@sensitive_variables()
def revoke(body: str, *, places: Sequence[str]) -> Answer:
    """Of the revocation endpoint (RFC 7009): either token ends all that its client was let do with it."""
    endpoint = RevocationEndpoint(_Validator(places))
    headers, text, status = endpoint.create_revocation_response(_HERE, "POST", body, {})
    return headers, text, status


class _Codes(AuthorizationCodeGrant):  # type: ignore[misc]
    _code_challenge_methods = {"S256": code_challenge_method_s256}


def _codes(resource: str, places: Sequence[str] = ()) -> AuthorizationCodeGrant:
    grant = _Codes(_Validator(places))
    grant.custom_validators.pre_auth.extend([_for(resource), _require_proof])
    grant.custom_validators.pre_token.append(_for(resource))
    return grant


def _for(resource: str) -> Any:
    """RFC 8707: a token is asked for this server's `/mcp`, or for nothing said."""

    def check(request: Request) -> dict[str, Any]:
        twice = "resource" in request.duplicate_params
        if twice or request.resource not in {None, resource}:
            raise CustomOAuth2Error(
                "invalid_target", f"Tokens are given for {resource}.", request=request
            )
        return {}

    return check


def _require_proof(request: Request) -> dict[str, Any]:
    if request.response_mode not in {None, "query"}:
        raise InvalidRequestError("Answers are sent in the query.", request=request)
    if not _CHALLENGE.fullmatch(request.code_challenge or ""):
        raise InvalidRequestError("A code_challenge by S256 is needed.", request=request)
    return {}


class _Validator(RequestValidator):  # type: ignore[misc]
    """What `oauthlib` asks. `request.connection` is the locked row that the request is about."""

    def __init__(self, places: Sequence[str]) -> None:
        super().__init__()
        self._places = places

    # --- who asks: clients have no secrets, and some have keys ----------------------------------

    def client_authentication_required(self, request: Request, *_args: Any, **_more: Any) -> bool:
        """Of whoever named keys, always."""
        client_id = request.client_id or assertions.told_by(_assertion_of(request)).client_id
        return self.validate_client_id(client_id, request) and request.client.keys is not None

    def authenticate_client(self, request: Request, *_args: Any, **_more: Any) -> bool:
        client: McpClient = request.client
        request.client_id = client.client_id
        return assertions.proves(client, _assertion_of(request), self._places)

    def authenticate_client_id(
        self, client_id: Any, request: Request, *_args: Any, **_more: Any
    ) -> bool:
        return self.validate_client_id(client_id, request)

    def validate_client_id(
        self, client_id: Any, request: Request, *_args: Any, **_more: Any
    ) -> bool:
        known = McpClient.objects.filter(client_id=str(client_id or ""), blocked_at=None).first()
        request.client = known
        return known is not None

    def validate_grant_type(self, *_args: Any, **_more: Any) -> bool:
        return True

    # --- what it asks a person for --------------------------------------------------------------

    def validate_redirect_uri(
        self, _client_id: str, redirect_uri: str, request: Request, *_args: Any, **_more: Any
    ) -> bool:
        return any(fits(redirect_uri, each) for each in request.client.redirect_uris)

    def get_default_redirect_uri(
        self, _client_id: str, request: Request, *_args: Any, **_more: Any
    ) -> str | None:
        """None to a person's browser. With a code, which its proof binds already, clients of OAuth 2.1 do not
        say it again."""
        row: Connection | None = getattr(request, "connection", None)
        return row.redirect_uri if row is not None else None

    def validate_response_type(
        self, _client_id: str, response_type: str, *_args: Any, **_more: Any
    ) -> bool:
        return response_type == "code"

    def is_pkce_required(self, _client_id: str, _request: Request) -> bool:
        return True

    def get_default_scopes(self, *_args: Any, **_more: Any) -> list[str]:
        return [scope.value for scope in USUAL]

    def validate_scopes(
        self, _client_id: str, scopes: Sequence[str], *_args: Any, **_more: Any
    ) -> bool:
        return bool(known_among(scopes))

    # --- a code ---------------------------------------------------------------------------------

    def validate_code(
        self, _client_id: str, code: str, client: McpClient, request: Request, *_a: Any, **_m: Any
    ) -> bool:
        row = _locked(code_hash=hash_token(code[:LONGEST_SECRET]))
        if row is None or row.client_id != client.pk:
            return False
        if row.redeemed_at is not None:
            _end(row)
            return False
        return _admit(row, request)

    def get_code_challenge(self, _code: str, request: Request) -> str:
        return str(request.connection.challenge)

    def get_code_challenge_method(self, _code: str, _request: Request) -> str:
        return "S256"

    def confirm_redirect_uri(
        self, _client_id: str, _code: str, redirect_uri: str, _client: Any, request: Request,
        *_args: Any, **_more: Any,
    ) -> bool:  # fmt: skip
        return bool(redirect_uri == request.connection.redirect_uri)

    def invalidate_authorization_code(self, *_args: Any, **_more: Any) -> None:
        """`save_token` has said that it is redeemed."""

    # --- a refresh token ------------------------------------------------------------------------

    def validate_refresh_token(
        self, refresh_token: str, client: McpClient, request: Request, *_args: Any, **_more: Any
    ) -> bool:
        family, dot, _own = refresh_token.partition(".")
        row = _locked(family_hash=hash_token(family)) if dot else None
        if len(refresh_token) > LONGEST_SECRET or row is None or row.client_id != client.pk:
            return False
        if row.refresh_hash != hash_token(refresh_token):
            _end(row)
            return False
        return _admit(row, request)

    def get_original_scopes(
        self, _refresh_token: str, request: Request, *_args: Any, **_more: Any
    ) -> list[str]:
        return list(request.connection.token.scopes)

    def is_within_original_scope(self, *_args: Any, **_more: Any) -> bool:
        return False

    def rotate_refresh_token(self, _request: Request) -> bool:
        return True

    # --- what came of it ------------------------------------------------------------------------

    def save_token(self, token: dict[str, Any], request: Request, *_a: Any, **_m: Any) -> None:
        row: Connection = request.connection
        now = timezone.now()
        if row.redeemed_at is None:
            # Of two codes that are redeemed at once, one is the later. Whoever blocks the client begins here.
            client = McpClient.objects.select_for_update().get(pk=row.client_id)
            row.redeemed_at = now
            row.token.expiry = row.ends_at
            row.token.save(update_fields=["expiry"])
            if client.read_at is None:
                _supersede(row)
        row.access_hash = hash_token(token["access_token"])
        row.access_ends_at = now + timedelta(seconds=token["expires_in"])
        row.family_hash = hash_token(token["refresh_token"].partition(".")[0])
        row.refresh_hash = hash_token(token["refresh_token"])
        row.save()
        # All that she allowed, whatever part of it was asked for: so it is told.
        token["scope"] = " ".join(row.token.scopes)

    def revoke_token(
        self, token: str, _token_type_hint: str, request: Request, *_args: Any, **_more: Any
    ) -> None:
        given = token[:LONGEST_SECRET]
        if given.startswith(ACCESS_PREFIX):
            row = _locked(access_hash=hash_token(given))
        else:
            row = _locked(family_hash=hash_token(given.partition(".")[0]))
        if row is not None and row.client_id == request.client.pk:
            _end(row)


def _locked(**having: str) -> Connection | None:
    rows = Connection.objects.select_for_update(of=("self",))
    return rows.select_related("token__user", "token__organisation").filter(**having).first()


def _admit(row: Connection, request: Request) -> bool:
    """Whether it is in force still, whoever redeems it: her account, her membership, her token."""
    if not Connection.objects.in_force(timezone.now()).filter(pk=row.pk).exists():
        return False
    request.connection, request.user = row, row.token.user
    request.scopes = list(row.token.scopes)
    return True


def _end(row: Connection) -> None:
    revoke_each(actor=row.token.user, tokens=ApiToken.objects.filter(pk=row.pk))


def _supersede(row: Connection) -> None:
    """One that registered itself is one program: what it was let do before ends when she lets it in anew. A
    document is that of all installations, each of which she lets in by itself."""
    token = row.token
    before = ApiToken.objects.filter(
        mcp_connection__client=row.client_id,
        mcp_connection__redeemed_at__isnull=False,
        user=token.user_id,
        organisation=token.organisation_id,
    )
    earlier = before.valid_at(timezone.now()).exclude(pk=row.pk)
    revoke_each(actor=token.user, tokens=earlier)


def _assertion_of(request: Request) -> str:
    """What a client signed; empty: nothing that would count."""
    twice = "client_assertion" in request.duplicate_params
    kind = getattr(request, "client_assertion_type", None)
    given = getattr(request, "client_assertion", None)
    return str(given) if given and kind == assertions.KIND and not twice else ""


def _seconds_left(request: Request) -> int:
    ends: datetime = request.connection.ends_at
    return max(1, min(ACCESS_SECONDS, int((ends - timezone.now()).total_seconds())))


def _new_access(_request: Request) -> str:
    return ACCESS_PREFIX + new_token()


def _new_refresh(request: Request) -> str:
    """All of one connection begin alike, so that an old one is known for what it is. With a code nothing is
    renewed, whatever else its client sends."""
    renewed = request.refresh_token if request.grant_type == "refresh_token" else ""
    family = renewed.partition(".")[0] or REFRESH_PREFIX + new_token()
    return f"{family}.{secrets.token_urlsafe(32)}"
