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

from harness.errors import AddressRefused, Invalid
from net.addresses import Address
from net.guarded import guarded_client
from net.hostlists import entries_with_ports, why_refused
from reading.foreignjson import Unreadable, read_json
from reading.hostnames import split_address

from .described import described
from .models import ID_LENGTH, McpClient
from .redirects import is_redirect

FRESH = timedelta(hours=1)
SECONDS = 10.0
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
    if said.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in said:
        raise _refused(_("It wants to show a secret, which no client here has."))
    try:
        told = described(said)
    except Invalid as problem:
        raise _refused(problem.message) from None
    row, _made = McpClient.objects.update_or_create(
        client_id=client_id,
        defaults={
            "name": told.name,
            "redirect_uris": told.redirect_uris,
            "read_at": timezone.now(),
        },
    )
    return row


def judge(host: str, address: Address, port: int) -> None:
    """Raises AddressRefused for what lies inside this network, unless the operator lists it."""
    listed = entries_with_ports(settings.AGENTSITE_MCP_PRIVATE_HOSTS)
    if why_refused(host.strip("[]").lower().removesuffix("."), address, port, listed):
        raise AddressRefused(_("The client's address leads to where none may be."))


def _fetched(url: str) -> dict[str, Any]:
    # On a loop of its own, in a thread of its own: the caller's thread may have one already.
    with ThreadPoolExecutor(1, thread_name_prefix="agentsite-mcp-client") as pool:
        try:
            body = pool.submit(lambda: asyncio.run(_read(url))).result()
        except AddressRefused as problem:
            raise _refused(problem.message) from None
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
