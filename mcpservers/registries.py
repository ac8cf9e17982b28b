"""Registries of MCP servers that the operator names (`AGENTSITE_MCP_REGISTRIES`): what they have is
searched and read, and nothing is kept of it. They speak the registry's open interface, `/v0.1/servers`.

Each connection is judged as those to MCP servers; redirects are not followed, answers are bounded. Whatever a
registry says, what it says of a server is `serverjson`'s to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import AgentError, Declined, Invalid, NotFound
from net.guarded import guarded_client
from reading.foreignjson import Unreadable, read_json

from .addresses import check_url, judge
from .serverjson import LATEST, NAME, VERSION, ServerJson, read_server

SECONDS = 15.0
"""Of one answer, to its last byte."""
MOST_BYTES = 2_000_000
MOST_PARTS = 60_000
PAGE = 30
LONGEST_CURSOR = 500
LONGEST_SEARCH = 100


class Unregistered(Declined):
    """A registry said nothing that could be used; says why, for a person."""

    code = "mcp_registry"


@dataclass(frozen=True, slots=True)
class Found:
    servers: tuple[ServerJson, ...]
    unreadable: int
    """How many more there were that nobody can read."""
    cursor: str
    """Of the next page; empty: this is the last."""


def registry_named(number: int) -> str:
    """The address of one of the operator's, by its place. Raises NotFound."""
    known = settings.AGENTSITE_MCP_REGISTRIES
    if not 0 <= number < len(known):
        raise NotFound(
            _("There is no such registry."),
            hint=_("The operator names some in AGENTSITE_MCP_REGISTRIES."),
        )
    return str(known[number]).rstrip("/")


def search(base: str, text: str, cursor: str = "") -> Found:
    """The newest version of each server that fits, a page of them. It connects, so outside of any
    transaction. Raises Unregistered."""
    query = {"limit": str(PAGE), "version": LATEST}
    if text := text.strip()[:LONGEST_SEARCH]:
        query["search"] = text
    if cursor:
        query["cursor"] = cursor[:LONGEST_CURSOR]
    answer = _asked(base, "/v0.1/servers", query)
    listed = answer.get("servers")
    if not isinstance(listed, list):
        raise _nonsense()
    found: list[ServerJson] = []
    unreadable = 0
    for each in listed[:PAGE]:
        try:
            found.append(_server_in(each))
        except Invalid:
            unreadable += 1
    told = answer.get("metadata")
    following = told.get("nextCursor") if isinstance(told, dict) else None
    # One that leads back to where it was asked, or from an empty page on, has no end.
    if not isinstance(following, str) or following == cursor or not listed:
        following = ""
    if len(following) > LONGEST_CURSOR or not following.isprintable():
        following = ""
    return Found(tuple(found), unreadable, following)


def read_version(base: str, name: str, version: str) -> ServerJson:
    """One version of one server, which is what it was asked for. Raises NotFound, and as `search`."""
    if not NAME.fullmatch(name) or not VERSION.fullmatch(version):
        raise NotFound(_("There is no such server in the registry."))
    path = f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version, safe='')}"
    found = _server_in(_asked(base, path, {}))
    if found.name != name or version not in {LATEST, found.version}:
        raise Unregistered(
            _("The registry was asked for %(name)s %(version)s and tells of another server.")
            % {"name": name, "version": version},
            hint=_("Tell whoever runs it."),
        )
    return found


def _server_in(entry: Any) -> ServerJson:
    """With its wrapping, or as the interface had it before. Raises Invalid."""
    inner = entry.get("server") if isinstance(entry, dict) else None
    return read_server(inner if isinstance(inner, dict) else entry)


def _asked(base: str, path: str, query: Mapping[str, str]) -> dict[str, Any]:
    address = f"{base}{path}" + (f"?{urlencode(query)}" if query else "")
    try:
        check_url(base)
        data = async_to_sync(_got)(address)
        value = read_json(data.decode(), limit=MOST_BYTES, parts=MOST_PARTS)
    except (Unregistered, NotFound):
        raise
    except (UnicodeDecodeError, Unreadable):
        raise _nonsense() from None
    except AgentError as problem:
        raise Unregistered(problem.message, hint=problem.hint) from None
    if not isinstance(value, dict):
        raise _nonsense()
    return value


async def _got(address: str) -> bytes:
    try:
        async with guarded_client(
            judge, timeout=httpx2.Timeout(SECONDS), seconds=SECONDS, most_bytes=MOST_BYTES
        ) as client:
            answer = await client.get(address, headers={"Accept": "application/json"})
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise Unregistered(
            _("The registry cannot be reached: %(why)s") % {"why": str(problem)[:200]},
            hint=_("Try again later."),
        ) from None
    if answer.is_redirect:
        raise Unregistered(
            _("The registry sends us elsewhere, where nobody follows."),
            hint=_("Ask the operator to name the address that it has now."),
        )
    if answer.status_code == 404:
        raise NotFound(_("There is no such server in the registry."))
    if answer.status_code != 200:
        raise Unregistered(
            _("The registry answered %(code)d.") % {"code": answer.status_code},
            hint=_("Try again later."),
        )
    return bytes(answer.content)


def _nonsense() -> Unregistered:
    return Unregistered(
        _("The registry answers otherwise than one does."),
        hint=_("Ask the operator whether its address is right."),
    )
