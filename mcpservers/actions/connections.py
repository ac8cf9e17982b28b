"""A person connects her account at an MCP server, and ends that; who manages a server registers a client for
it by hand.

OAuth 2.1 as its client: with PKCE, for this resource, at the authorisation server that the MCP server names,
to which the answer is held. What is kept meanwhile is sealed, serves once, and only her who began.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args
from urllib.parse import urlencode

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from pydantic import BaseModel, ConfigDict, Field

from accounts import vault as seals
from accounts.models import Organisation, User
from accounts.permissions import require_member
from accounts.persons import hold_place
from audit.record import Action
from harness.errors import Conflict, Invalid, NotFound
from jobs.garbage import keeping_what_is_imported
from jobs.turnstile import Turnstile
from mcpservers.addresses import check_url
from mcpservers.auditing import about_server
from mcpservers.connecting import connection_of, is_answer_of
from mcpservers.models import McpClient, McpConnection, McpFlow, McpServer
from reading.hostnames import split_address
from reading.moments import moment_at
from vaults.actions.credentials import archive_credential, create_credential
from vaults.actions.vaults import create_vault
from vaults.auth import ClientAuth, Details, NewAuth, Refresh, Secrets, details_of, secrets_of
from vaults.models import Vault, VaultCredential
from vaults.oauth import Granted, RefreshFailed, ask_endpoint, granted

from .servers import lock_server

if TYPE_CHECKING:
    from mcpservers.guards import Guard

GIVEN_SECONDS = 600
"""In which a person is back from the authorisation server."""
KEPT_IN = {"agentsite": "mcp connections"}
"""The metadata of the vaults in which tokens are kept."""
MOST_IN_ONE = 20
_asking = Turnstile(4, slow=5)
T = TypeVar("T")


class Departure(BaseModel):
    """What is kept of somebody who was sent to an authorisation server."""

    model_config = ConfigDict(frozen=True)

    issuer: str
    names_itself: bool
    verifier: str = Field(repr=False)
    client_id: str
    client_secret: str = Field(repr=False)
    client_auth: ClientAuth
    token_endpoint: str
    revocation_endpoint: str
    redirect_uri: str
    resource: str
    scope: str
    steps: int
    url: str
    back: str


@dataclass(frozen=True, slots=True)
class Way:
    """Where a person goes to allow it."""

    url: str
    host: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Back:
    """A person who came back, and what came of it."""

    path: str
    """Where she was when she began; empty: nowhere in particular."""
    connection: McpConnection | None = None
    """None: she refused, or was refused."""


@sensitive_variables()
def begin_connection(
    *,
    actor: User,
    organisation: Organisation,
    server: McpServer,
    redirect_uri: str,
    document: str = "",
    back: str = "",
) -> Way:
    """Ask the server who guards it, and be known there. Outside of any transaction: it waits for both.

    `document`: the address of the document that says who we are, where others can read one. `back`: the path
    of our own page to which she comes back. Raises NotFound, Conflict where it is switched off, Busy,
    NotConfigured, and Declined where nobody can be connected.
    """
    _require_use(actor, organisation, server)
    _require_address(server)
    if server.disabled_at is not None:
        raise Conflict(_("This MCP server is switched off."), hint=_("Ask who manages it."))
    with keeping_what_is_imported():
        from mcpservers import guards  # noqa: PLC0415 - heavy
    with _asking.place(actor.pk, among=organisation.pk):
        guard = _now(lambda: guards.find_guard(server.url))
        client = _client_for(server, guard, redirect_uri, document)
    before = connection_of(server, actor.pk, organisation.pk)
    scope, steps = guard.scope, 0
    if before is not None:
        wanted = [*guard.scope.split(), *before.scope.split(), *before.wanted_scope.split()]
        scope, steps = " ".join(dict.fromkeys(wanted)), before.steps
    verifier, state = secrets.token_urlsafe(64), secrets.token_urlsafe(32)
    departure = Departure(
        issuer=guard.issuer,
        names_itself=guard.names_itself,
        verifier=verifier,
        client_id=client.client_id,
        client_secret=seals.open_sealed(client.sealed) if client.sealed else "",
        client_auth=_method(client.method),
        token_endpoint=guard.token_endpoint,
        revocation_endpoint=guard.revocation_endpoint,
        redirect_uri=redirect_uri,
        resource=guard.resource,
        scope=scope,
        steps=steps,
        url=server.url,
        back=_our_path(back),
    )
    now = timezone.now()
    with transaction.atomic():
        McpFlow.objects.filter(expires_at__lt=now).delete()
        McpFlow.objects.filter(server=server, user=actor).delete()
        McpFlow.objects.create(
            digest=_digest(state),
            server=server,
            user=actor,
            organisation=organisation,
            sealed=seals.seal(departure.model_dump_json()),
            expires_at=now + timedelta(seconds=GIVEN_SECONDS),
        )
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": _challenge(verifier),
        "code_challenge_method": "S256",
        "resource": guard.resource,
    }
    if scope:
        asked["scope"] = scope
        if "offline_access" in scope.split():
            asked["prompt"] = "consent"
    joint = "&" if split_address(guard.authorization_endpoint).query else "?"
    return Way(
        f"{guard.authorization_endpoint}{joint}{urlencode(asked)}",
        guards.host_of_endpoint(guard.authorization_endpoint),
        tuple(scope.split()),
    )


@sensitive_variables()
def finish_connection(*, actor: User, server: McpServer, given: Mapping[str, str]) -> Back:
    """What the person brings back, as the query of our page.

    Raises NotFound for what nobody began, or somebody else; Conflict where it is late or was refused, and
    Declined where no token is given.
    """
    flow = _take(actor, server, given.get("state", ""))
    departure = Departure.model_validate_json(seals.open_sealed(flow.sealed))
    names_itself = departure.names_itself
    if not is_answer_of(departure.issuer, given.get("iss", ""), names_itself=names_itself):
        raise Conflict(
            _("Another authorisation server answered than was asked. Nothing was sent to it."),
            hint=_("Begin again; if it happens again, tell who manages the MCP server."),
        )
    if given.get("error"):
        return Back(departure.back)
    code = given.get("code", "")
    if not code or len(code) > 8_000:
        raise Conflict(_("The authorisation server brought no code."), hint=_("Begin again."))
    if server.url != departure.url:
        raise Conflict(_("The MCP server has moved meanwhile."), hint=_("Begin again."))
    refresh = Refresh(
        token_endpoint=departure.token_endpoint,
        client_id=departure.client_id,
        client_auth=departure.client_auth,
        resource=departure.resource,
        of_mcp_server=True,
    )
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": departure.redirect_uri,
        "code_verifier": departure.verifier,
    }
    try:
        with _asking.place(actor.pk, among=server.organisation_id):
            got = granted(_now(lambda: ask_endpoint(refresh, departure.client_secret, form)))
    except RefreshFailed as problem:
        _forget_client(server, departure, problem)
        raise Conflict(
            _("No token was given: %(why)s") % {"why": str(problem)}, hint=_("Begin again.")
        ) from None
    return _keep(actor, flow, departure, refresh, got)


def end_connection(*, actor: User, organisation: Organisation, server: McpServer) -> None:
    """Her own. The tokens are forgotten here first and then, where it offers that, at the authorisation
    server. Raises NotFound where there is none."""
    found = connection_of(server, actor.pk, organisation.pk)
    if found is None:
        raise NotFound(_("You are not connected to it."))
    held, details = secrets_of(found.credential), details_of(found.credential)
    with transaction.atomic():
        about_server(Action.MCP_DISCONNECTED, actor, server, issuer=found.issuer)
        found.delete()
        archive_credential(actor=actor, credential=found.credential)
    if found.revocation_endpoint and details.refresh is not None:
        token = held.refresh_token or held.token
        refresh, endpoint = details.refresh, found.revocation_endpoint
        _now(lambda: ask_endpoint(refresh, held.client_secret, {"token": token}, endpoint=endpoint))


@sensitive_variables("client_secret")
def register_client(
    *,
    actor: User,
    server: McpServer,
    issuer: str,
    client_id: str,
    client_secret: str = "",
    method: str = "",
) -> McpClient:
    """What somebody registered for us at an authorisation server. It goes before all other ways. Raises
    NotFound, Forbidden, NotConfigured and Invalid naming the field."""
    issuer = issuer.strip()
    _check_issuer(issuer)
    client_id, client_secret = client_id.strip(), client_secret.strip()
    if not (client_id.isascii() and client_id.isprintable() and 1 <= len(client_id) <= 2_000):
        raise Invalid(
            _("A client's id is one line of plain characters."),
            field="client_id",
            hint=_("Copy it from the authorisation server."),
        )
    if len(client_secret) > 8_192 or not all("!" <= sign <= "~" for sign in client_secret):
        raise Invalid(
            _("A client's secret has no spaces."),
            field="client_secret",
            hint=_("Paste the secret alone, or leave it out where there is none."),
        )
    method = method or ("client_secret_basic" if client_secret else "none")
    if method not in get_args(ClientAuth) or (method != "none") != bool(client_secret):
        raise Invalid(
            _("This way to show who one is does not go with the secret."),
            field="method",
            hint=_("With a secret choose basic or post; without, none."),
        )
    with transaction.atomic():
        held = lock_server(actor, server)
        row, _made = McpClient.objects.update_or_create(
            server=held,
            issuer=issuer,
            defaults={
                "kind": McpClient.Kind.BY_HAND,
                "client_id": client_id,
                "sealed": seals.seal(client_secret) if client_secret else "",
                "method": method,
                "redirect_uri": "",
                "expires_at": None,
            },
        )
        about_server(Action.MCP_CLIENT_SET, actor, held, issuer=issuer)
    return row


# --- parts ----------------------------------------------------------------------------------------


def _check_issuer(issuer: str) -> None:
    """Raises Invalid, on `issuer`."""
    try:
        check_url(issuer)
    except Invalid as problem:
        raise type(problem)(problem.message, field="issuer", hint=problem.hint) from None


def _require_use(actor: User, organisation: Organisation, server: McpServer) -> None:
    require_member(actor, organisation)
    if not McpServer.objects.usable_by(actor, organisation.pk).filter(pk=server.pk).exists():
        raise NotFound(_("There is no such MCP server."))


def _require_address(server: McpServer) -> None:
    if server.argv:
        raise Conflict(
            _("This MCP server is a program, at which nobody has an account."),
            hint=_("Give it what it needs as variables, on its page."),
        )


def _client_for(server: McpServer, guard: Guard, redirect_uri: str, document: str) -> McpClient:
    """Registered by hand before; else our document; else registered now."""
    from mcpservers import guards  # noqa: PLC0415 - heavy

    held = McpClient.objects.filter(server=server, issuer=guard.issuer).first()
    if held is not None and _serves(held, redirect_uri):
        return held
    if guard.takes_document and document:
        made = guards.Registered(document, "", "none", 0.0)
        kind = McpClient.Kind.DOCUMENT
    elif guard.registration_endpoint:
        made = _now(lambda: guards.register(guard, redirect_uri))
        kind = McpClient.Kind.DYNAMIC
    else:
        raise guards.Unguarded(
            _("%(issuer)s knows no Agentsite and registers nobody by itself.")
            % {"issuer": guard.issuer},
            hint=_(
                "Who manages the MCP server can register a client there, and enter it on its page."
            ),
        )
    row, _made = McpClient.objects.update_or_create(
        server=server,
        issuer=guard.issuer,
        defaults={
            "kind": kind,
            "client_id": made.client_id,
            "sealed": seals.seal(made.secret) if made.secret else "",
            "method": made.method,
            "redirect_uri": redirect_uri,
            "expires_at": moment_at(made.expires_at) if made.expires_at else None,
        },
    )
    return row


def _serves(client: McpClient, redirect_uri: str) -> bool:
    if client.kind == McpClient.Kind.BY_HAND:
        return True
    fresh = client.expires_at is None or client.expires_at > timezone.now()
    return fresh and client.redirect_uri == redirect_uri


def _method(method: str) -> ClientAuth:
    return cast(ClientAuth, method) if method in get_args(ClientAuth) else "none"


def _forget_client(server: McpServer, departure: Departure, problem: RefreshFailed) -> None:
    """One that registered itself and is known no more registers anew the next time."""
    outcome = problem.outcome
    if outcome is None or "invalid_client" not in outcome.body:
        return
    McpClient.objects.filter(
        server=server, issuer=departure.issuer, client_id=departure.client_id
    ).exclude(kind=McpClient.Kind.BY_HAND).delete()


def _take(actor: User, server: McpServer, state: str) -> McpFlow:
    with transaction.atomic():
        mine = McpFlow.objects.filter(digest=_digest(state), user=actor, server=server)
        flow = mine.select_for_update(of=("self",)).select_related("organisation", "server").first()
        if flow is None:
            raise NotFound(_("Nobody began this, or it was used already."))
        flow.delete()
    if flow.expires_at < timezone.now():
        raise Conflict(_("It took too long."), hint=_("Begin again."))
    _require_use(actor, flow.organisation, flow.server)
    return flow


def _keep(actor: User, flow: McpFlow, departure: Departure, refresh: Refresh, got: Granted) -> Back:
    scope = got.scope or departure.scope
    auth = NewAuth(
        VaultCredential.Kind.MCP_OAUTH,
        departure.url,
        Secrets(
            token=got.token,
            refresh_token=got.refresh_token,
            client_secret=departure.client_secret if got.refresh_token else "",
        ),
        Details(expires_at=got.expires_at, refresh=refresh if got.refresh_token else None),
    )
    with transaction.atomic():
        hold_place(actor, flow.organisation)
        row = McpConnection.objects.filter(
            server=flow.server, user=actor, organisation=flow.organisation
        ).first()
        if row is not None:
            before = row.credential
            row.delete()
            archive_credential(actor=actor, credential=before)
        name = _("MCP server %(name)s") % {"name": flow.server.name}
        credential = create_credential(
            actor=actor,
            vault=_vault_of(actor, flow.organisation, departure.url),
            auth=auth,
            display_name=name,
        )
        made = McpConnection.objects.create(
            server=flow.server,
            user=actor,
            organisation=flow.organisation,
            credential=credential,
            url=departure.url,
            issuer=departure.issuer,
            revocation_endpoint=departure.revocation_endpoint,
            # What was asked for counts as had: who was refused it is not sent to ask for it again and again.
            scope=" ".join(dict.fromkeys([*departure.scope.split(), *scope.split()])),
            steps=departure.steps,
        )
        about_server(Action.MCP_CONNECTED, actor, flow.server, issuer=departure.issuer)
    return Back(departure.back, made)


def _vault_of(actor: User, organisation: Organisation, url: str) -> Vault:
    for vault in Vault.objects.in_force().filter(
        owner=actor, organisation=organisation, metadata=KEPT_IN
    ):
        held = vault.credentials.filter(archived_at=None)
        if held.count() < MOST_IN_ONE and not held.filter(url=url).exists():
            return vault
    return create_vault(
        actor=actor,
        organisation=organisation,
        display_name=_("Connections to MCP servers"),
        metadata=KEPT_IN,
    )


def _our_path(back: str) -> str:
    """A path of ours, or none."""
    plain = back.isprintable() and len(back) <= 500 and "\\" not in back
    return back if plain and back.startswith("/") and not back.startswith("//") else ""


def _digest(state: str) -> str:
    return sha256(state.encode("utf-8", "replace")).hexdigest()


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")


def _now(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """On a loop of its own, in a thread of its own: the caller's thread may have one already."""
    with ThreadPoolExecutor(1, thread_name_prefix="agentsite-mcp-connect") as pool:
        return pool.submit(lambda: asyncio.run(work())).result()
