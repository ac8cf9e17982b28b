"""Reads a pasted `mcp.json`: which servers it names, as they are added one by one.

Taken are servers that are reached by an address, and programs with their arguments and variables. What may be
added is judged by the action.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from harness.errors import Invalid
from reading.foreignjson import Unreadable, read_json

LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    command: str = ""
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict, repr=False)


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
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32].strip("-")
    if "command" in held:
        return _program(plain, about, held)
    url, headers = held.get("url") or held.get("serverUrl"), held.get("headers", {})
    if not isinstance(url, str):
        raise _refused(_("“%(name)s” has no “url”.") % {"name": about})
    if not isinstance(headers, dict) or not all(isinstance(one, str) for one in headers.values()):
        raise _refused(_("The headers of “%(name)s” are no texts.") % {"name": about})
    token = held.get("authorization_token")
    if isinstance(token, str) and token:
        headers = {**headers, "Authorization": f"Bearer {token}"}
    _require_values(about, (url, *headers.values()))
    return Named(plain, url, headers)


def _program(plain: str, about: str, held: dict[str, Any]) -> Named:
    command, arguments, variables = held["command"], held.get("args", []), held.get("env", {})
    texts = isinstance(arguments, list) and isinstance(variables, dict)
    if not texts or not all(
        isinstance(one, str) for one in (command, *arguments, *variables.values())
    ):
        raise _refused(
            _("“command”, “args” and “env” of “%(name)s” are no texts.") % {"name": about}
        )
    _require_values(about, (command, *arguments, *variables.values()))
    return Named(plain, command=command, arguments=tuple(arguments), variables=variables)


def _require_values(about: str, texts: Iterable[str]) -> None:
    if any("${" in text for text in texts):
        raise _refused(
            _("“%(name)s” has a variable such as ${TOKEN}; write its value instead.")
            % {"name": about}
        )


def _refused(message: str) -> Invalid:
    return Invalid(message, field="json", hint=_("Correct the text and paste it again."))
