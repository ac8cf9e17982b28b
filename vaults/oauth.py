"""New access tokens for old ones, and a try whether a service takes the one there is.

Requests go out as webhooks do: to judged addresses, bounded, without redirects. What is stored changes
only if nobody replaced it meanwhile, and of several processes one exchanges a refresh token.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeGuard
from urllib.parse import quote, urlencode

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from jobs.engine import engine
from net import hostlists, lookups
from net.addresses import Address
from reading.foreignjson import Unreadable, read_json
from webhooks import outbox
from webhooks.addresses import LOOK_UP_SECONDS, AddressRefused, AddressUnknown, judged_addresses
from webhooks.requests import Outcome, post

from .auth import Details, Refresh, Secrets, details_of, sealed, secrets_of
from .models import VaultCredential

CLAIM = timedelta(seconds=60)
"""After that an exchange counts as lost with its process."""
WAIT_SECONDS, LOOK_SECONDS = 30.0, 0.2
"""How long one waits for another process' exchange, and how often one looks."""
ANSWER_BYTES = 64 * 1024
BODY_CHARACTERS = 1_000
"""Kept of what a service answered to a try that failed."""
MOST_SECONDS = 10 * 365 * 24 * 3600
HIDDEN = "[secret]"
PLAIN = {"Accept-Encoding": "identity"}


class RefreshFailed(Exception):
    """No new access token; says why, without a secret."""

    def __init__(self, reason: str, outcome: Outcome | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a process that may exchange a refresh token works with."""

    credential_id: int
    sealed: str
    secrets: Secrets
    details: Details


async def fresh_token(credential_id: int, *, stale: str | None = None) -> str:
    """An access token whose time is not up, exchanged for the refresh token if need be. `stale` is a
    token that was refused, whatever its time. Raises `RefreshFailed`."""
    end = asyncio.get_running_loop().time() + WAIT_SECONDS
    while True:
        got = await engine.in_database(_claim, credential_id, stale)
        if isinstance(got, str):
            return got
        if got is not None:
            return await _exchanged(got)
        if asyncio.get_running_loop().time() > end:
            raise RefreshFailed("another process did not finish renewing the token")
        await asyncio.sleep(LOOK_SECONDS)


def _claim(credential_id: int, stale: str | None) -> str | Claimed | None:
    """A token that is good, the right to exchange, or None while another one has it."""
    now = timezone.now()
    with transaction.atomic():
        row = VaultCredential.objects.in_force().filter(pk=credential_id)
        held = row.select_for_update(of=("self",)).first()
        if held is None:
            raise RefreshFailed("the credential was archived or deleted")
        secrets, details = secrets_of(held), details_of(held)
        if not details.is_over() and (stale is None or secrets.token != stale):
            return secrets.token
        if details.refresh is None or not secrets.refresh_token:
            raise RefreshFailed("the token is over and there is no refresh token")
        if held.refreshing_until is not None and held.refreshing_until > now:
            return None
        VaultCredential.objects.filter(pk=held.pk).update(refreshing_until=now + CLAIM)
    return Claimed(held.pk, held.sealed, secrets, details)


async def _exchanged(claimed: Claimed) -> str:
    refresh = claimed.details.refresh
    assert refresh is not None  # noqa: S101 - `_claim` saw to it
    try:
        outcome = await _ask(refresh, claimed.secrets)
        secrets, details = _read(outcome, claimed)
    except RefreshFailed:
        await engine.in_database(_give_up, claimed)
        raise
    except BaseException:
        await asyncio.shield(engine.in_database(_release, claimed))
        raise
    return await engine.in_database(_store, claimed, secrets, details)


async def _ask(refresh: Refresh, secrets: Secrets) -> Outcome:
    form = {"grant_type": "refresh_token", "refresh_token": secrets.refresh_token}
    if refresh.scope:
        form["scope"] = refresh.scope
    return await ask_endpoint(refresh, secrets.client_secret, form)


@sensitive_variables("client_secret", "form", "pair", "body")
async def ask_endpoint(
    refresh: Refresh, client_secret: str, form: Mapping[str, str], *, endpoint: str = ""
) -> Outcome:
    """Post a form to the token endpoint, or another of the same server, as its client (RFC 6749, 2.3)."""
    form = dict(form)
    headers = {
        **PLAIN,
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    if refresh.resource:
        form["resource"] = refresh.resource
    if refresh.client_auth == "client_secret_basic":
        pair = f"{quote(refresh.client_id, safe='')}:{quote(client_secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = refresh.client_id
    if refresh.client_auth == "client_secret_post":
        form["client_secret"] = client_secret
    body = urlencode(form).encode()
    addresses = _for_mcp_servers if refresh.of_mcp_server else judged_addresses
    url = endpoint or refresh.token_endpoint
    return await post(url, body, headers, most=ANSWER_BYTES, addresses=addresses)


async def _for_mcp_servers(host: str, port: int) -> list[str]:
    def judge(host: str, address: Address, port: int) -> None:
        listed = hostlists.entries_with_ports(settings.AGENTSITE_MCP_PRIVATE_HOSTS)
        if hostlists.why_refused(host, address, port, listed):
            raise AddressRefused(host, "AGENTSITE_MCP_PRIVATE_HOSTS")

    try:
        return await lookups.judged_addresses(host, port, judge, seconds=LOOK_UP_SECONDS)
    except lookups.UnknownHost as problem:
        raise AddressUnknown(str(problem)) from None


@dataclass(frozen=True, slots=True)
class Granted:
    """What a token endpoint gave."""

    token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    """Empty: none, or none that could be kept."""
    expires_at: datetime | None = None
    scope: str = ""
    """Empty: it did not say, so it is what was asked for."""


@sensitive_variables("answer", "token", "rotated")
def granted(outcome: Outcome) -> Granted:
    """What the token endpoint gave (RFC 6749, 5.1). Raises `RefreshFailed`."""
    if not outcome.is_delivered:
        raise RefreshFailed(f"the token endpoint refused: {outcome.summary}", outcome)
    try:
        answer: Any = read_json(outcome.body)
    except Unreadable:
        answer = None
    answer = answer if isinstance(answer, dict) else {}
    token = answer.get("access_token")
    if not _is_secret(token):
        raise RefreshFailed("the token endpoint answered without an access token", outcome)
    rotated, scope = answer.get("refresh_token"), answer.get("scope")
    seconds = answer.get("expires_in")
    known = isinstance(seconds, int | float) and 0 < seconds <= MOST_SECONDS
    return Granted(
        token,
        rotated if _is_secret(rotated) else "",
        timezone.now() + timedelta(seconds=seconds) if known else None,
        scope if isinstance(scope, str) and scope.isprintable() else "",
    )


def _read(outcome: Outcome, claimed: Claimed) -> tuple[Secrets, Details]:
    got = granted(outcome)
    kept = claimed.secrets.refresh_token
    secrets = claimed.secrets.model_copy(
        update={"token": got.token, "refresh_token": got.refresh_token or kept}
    )
    return secrets, claimed.details.model_copy(update={"expires_at": got.expires_at})


def _is_secret(value: Any) -> TypeGuard[str]:
    return (
        isinstance(value, str)
        and 0 < len(value) <= 8_192
        and all("!" <= character <= "~" for character in value)
    )


def _store(claimed: Claimed, secrets: Secrets, details: Details) -> str:
    """The token to use now. Whoever replaced the secrets meanwhile has the last word."""
    with transaction.atomic():
        held = VaultCredential.objects.in_force().filter(pk=claimed.credential_id)
        row = held.select_for_update(of=("self",)).first()
        if row is None:
            raise RefreshFailed("the credential was archived or deleted")
        row.refreshing_until = None
        if row.sealed == claimed.sealed:
            row.sealed, row.details = sealed(secrets), details.model_dump(mode="json")
        row.save(update_fields=["sealed", "details", "refreshing_until", "updated_at"])
        return secrets_of(row).token


def _release(claimed: Claimed) -> None:
    VaultCredential.objects.filter(pk=claimed.credential_id).update(refreshing_until=None)


def _give_up(claimed: Claimed) -> None:
    with transaction.atomic():
        rows = VaultCredential.objects.select_related("vault").filter(pk=claimed.credential_id)
        row = rows.select_for_update(of=("self",)).first()
        if row is None:
            return
        _release(claimed)
        outbox.announce(
            row.vault.organisation_id,
            "vault_credential.refresh_failed",
            subject=row.uid,
            vault_id=row.vault.uid,
        )


# --- whether a service takes it -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answered:
    """What a service said, without secrets."""

    status_code: int
    content_type: str
    body: str
    body_truncated: bool


@dataclass(frozen=True, slots=True)
class Refreshed:
    status: Literal["succeeded", "failed", "connect_error", "no_refresh_token"]
    answered: Answered | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    status: Literal["valid", "invalid", "unknown"]
    at: datetime
    failed_step: str = ""
    """The MCP method that was not answered well; empty: all were."""
    answered: Answered | None = None
    refreshed: Refreshed | None = None
    """None: no exchange was tried."""


async def validate(credential_id: int) -> Verdict:
    """Ask the MCP server for its tools with the token. One that is refused is renewed once."""
    url, secrets, details = await engine.in_database(_opened, credential_id)
    step, outcome = await _probe(url, secrets.token)
    refreshed: Refreshed | None = None
    if outcome is not None and outcome.status == 401:
        if details.refresh is None:
            refreshed = Refreshed("no_refresh_token")
        else:
            try:
                token = await fresh_token(credential_id, stale=secrets.token)
                refreshed = Refreshed("succeeded")
                secrets = secrets.model_copy(update={"token": token})
                step, outcome = await _probe(url, token)
            except RefreshFailed as problem:
                refreshed = _failed(problem, secrets)
    at = timezone.now()
    if outcome is None:
        return Verdict("valid", at, refreshed=refreshed)
    refused = outcome.status in {401, 403}
    answered = _answered(outcome, secrets)
    return Verdict("invalid" if refused else "unknown", at, step, answered, refreshed)


def _opened(credential_id: int) -> tuple[str, Secrets, Details]:
    row = VaultCredential.objects.get(pk=credential_id)
    return row.url, secrets_of(row), details_of(row)


async def _probe(url: str, token: str) -> tuple[str, Outcome | None]:
    """The step that failed and what came of it; no outcome: none failed."""
    headers = {
        **PLAIN,
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
    }
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "agentsite", "version": "1"},
    }
    for number, (method, parameters) in enumerate(
        (("initialize", hello), ("tools/list", {})), start=1
    ):
        call = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        outcome = await post(url, json.dumps(call).encode(), headers)
        if not outcome.is_delivered:
            return method, outcome
        if session := outcome.headers.get("mcp-session-id"):
            headers["Mcp-Session-Id"] = session
    return "", None


def _failed(problem: RefreshFailed, secrets: Secrets) -> Refreshed:
    outcome = problem.outcome
    if outcome is None or outcome.status is None:
        return Refreshed("connect_error" if outcome is not None else "failed")
    return Refreshed("failed", _answered(outcome, secrets))


def _answered(outcome: Outcome, secrets: Secrets) -> Answered | None:
    if outcome.status is None:
        return None
    text = secrets.hidden_in(outcome.excerpt, HIDDEN)
    declared = "" if outcome.is_inside else outcome.headers.get("content-type", "")
    kind = secrets.hidden_in(declared, HIDDEN)
    return Answered(outcome.status, kind[:200], text[:BODY_CHARACTERS], len(text) > BODY_CHARACTERS)
