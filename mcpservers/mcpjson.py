"""Reads a pasted `mcp.json`: which servers it names, as they are added one by one.

Taken are servers that are reached by an address. Such as would start a program are refused by name: there is
nothing on this server that starts one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from harness.errors import Invalid
from reading.foreignjson import Unreadable, read_json

LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)


def read_servers(text: str) -> list[Named]:
    """Raises Invalid, on `json`, saying what is wrong with which server."""
    try:
        given = read_json(text, limit=LONGEST)
    except Unreadable as problem:
        raise _refused(str(problem)) from None
    if not isinstance(given, dict):
        raise _refused(_("It is no JSON object."))
    servers = given.get("mcpServers", given.get("servers"))
    if not isinstance(servers, dict) or not servers:
        raise _refused(_("It names no servers under “mcpServers”."))
    return [_named(str(name), held) for name, held in servers.items()]


def _named(name: str, held: Any) -> Named:
    about = name[:60]
    if not isinstance(held, dict):
        raise _refused(_("“%(name)s” is no JSON object.") % {"name": about})
    if "command" in held:
        raise _refused(
            _("“%(name)s” would start a program; servers are reached by their address here.")
            % {"name": about}
        )
    url, headers = held.get("url") or held.get("serverUrl"), held.get("headers", {})
    if not isinstance(url, str):
        raise _refused(_("“%(name)s” has no “url”.") % {"name": about})
    if not isinstance(headers, dict) or not all(isinstance(one, str) for one in headers.values()):
        raise _refused(_("The headers of “%(name)s” are no texts.") % {"name": about})
    token = held.get("authorization_token")
    if isinstance(token, str) and token:
        headers = {**headers, "Authorization": f"Bearer {token}"}
    if any("${" in text for text in (url, *headers.values())):
        raise _refused(
            _("“%(name)s” has a variable such as ${TOKEN}; write its value instead.")
            % {"name": about}
        )
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32].strip("-")
    return Named(plain, url, headers)


def _refused(message: str) -> Invalid:
    return Invalid(message, field="json", hint=_("Correct the text and paste it again."))
