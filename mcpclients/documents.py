"""Clients whose id is the address of a document about them (client id metadata documents).

It is read through `net`, for a person who is signed in and only while she is asked to let the client in;
between two readings the row counts. Where it may be is judged like every address of a stranger.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx2
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from harness.errors import AddressRefused, Invalid, TooMany
from net.addresses import Address
from net.guarded import guarded_client
from net.hostlists import entries_with_ports, why_refused
from reading.foreignjson import Unreadable, read_json
from reading.hostnames import split_address

from . import rates
from .assertions import METHOD, keys_in
from .described import described
from .models import ID_LENGTH, McpClient
from .redirects import is_redirect

FRESH = timedelta(hours=1)
SECONDS = 10.0
KEYS_AN_HOUR = 20
"""Readings for the sake of a key that is not known, of one client's document."""
MOST_BYTES = 32 * 1024
MOST_PARTS = 1_000


def is_document(client_id: str) -> bool:
    """Whether an id is such an address: https, with a path, in its plain spelling."""
    if len(client_id) > ID_LENGTH or not is_redirect(client_id):
        return False
    parts = split_address(client_id)
    dots = {".", ".."}.intersection(parts.path.split("/"))
    return parts.scheme == "https" and parts.path not in {"", "/"} and not dots


def is_fresh(client: McpClient | None) -> bool:
    return (
        client is not None
        and client.read_at is not None
        and client.read_at > timezone.now() - FRESH
    )


def read_client(client_id: str) -> McpClient:
    """The row by what the document says now. Raises Invalid for a person."""
    said = _fetched(client_id)
    if said.get("client_id") != client_id:
        raise _refused(_("The document there is about another client."))
    method = said.get("token_endpoint_auth_method", "none")
    if method not in {"none", METHOD} or "client_secret" in said:
        raise _refused(_("It wants to show a secret, which no client here has."))
    try:
        told = described(said)
        keys = keys_in(_keys_of(said)) if method == METHOD else None
    except Invalid as problem:
        raise _refused(problem.message) from None
    row, _made = McpClient.objects.update_or_create(
        client_id=client_id,
        defaults={
            "name": told.name,
            "redirect_uris": told.redirect_uris,
            "keys": keys,
            "read_at": timezone.now(),
        },
    )
    return row


def _keys_of(said: dict[str, Any]) -> Any:
    """Where the document names them, or stands where it says they do: by https, or on the document's host."""
    place = said.get("jwks_uri")
    if place is None:
        return said.get("jwks")
    if not isinstance(place, str) or len(place) > ID_LENGTH or not is_redirect(place):
        return None
    parts, own = split_address(place), split_address(said["client_id"])
    same = (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
    return _fetched(place) if same or parts.scheme == "https" else None


def read_again_for(client_id: str, key_id: str) -> None:
    """A client signs with a key that it did not name when its document was last read. Nothing happens where
    that cannot be read, or was too often."""
    known = McpClient.objects.filter(client_id=client_id, blocked_at=None).first()
    if known is None or known.keys is None:
        return
    if any(key.get("kid") == key_id for key in known.keys["keys"]):
        return
    try:
        rates.count("keys", client_id, most=KEYS_AN_HOUR, seconds=rates.HOUR)
        read_client(client_id)
    except (Invalid, TooMany):
        pass


def judge(host: str, address: Address, port: int) -> None:
    """Raises AddressRefused for what lies inside this network, unless the operator lists it."""
    listed = entries_with_ports(settings.AGENTSITE_MCP_PRIVATE_HOSTS)
    if why_refused(host, address, port, listed):
        raise AddressRefused(
            _("The client's address leads to a private or local address, which is refused."),
            hint=_(
                "Check it, or ask the operator to list it, with its port, in"
                " AGENTSITE_MCP_PRIVATE_HOSTS."
            ),
        )


def _fetched(url: str) -> dict[str, Any]:
    # On a loop of its own, in a thread of its own: the caller's thread may have one already.
    with ThreadPoolExecutor(1, thread_name_prefix="agentsite-mcp-client") as pool:
        try:
            body = pool.submit(lambda: asyncio.run(_read(url))).result()
        except AddressRefused as problem:
            raise _refused(problem.words) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError):
            raise _refused(_("The document about it could not be read.")) from None
    try:
        said = read_json(body, limit=MOST_BYTES, parts=MOST_PARTS)
    except Unreadable:
        said = None
    if not isinstance(said, dict):
        raise _refused(_("There is no document about it at its address."))
    return said


async def _read(url: str) -> bytes:
    timeout = httpx2.Timeout(SECONDS)
    async with guarded_client(
        judge, timeout=timeout, seconds=SECONDS, most_bytes=MOST_BYTES
    ) as http:
        answer = await http.get(url, headers={"Accept": "application/json"})
        return answer.content if answer.status_code == 200 else b""


def _refused(why: str) -> Invalid:
    return Invalid(
        _("This client cannot be let in. %(why)s") % {"why": why},
        field="client_id",
        hint=_("Its maker has to mend that."),
    )
