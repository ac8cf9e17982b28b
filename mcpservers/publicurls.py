"""An address of a server as others may read it: without its query, and with a place for each key in its path.

Many services put one there (`/s/3f9a…/mcp`). What looks like one is asked of whoever adds the server, by the
open interface's own means; a place too many costs her a look at the address, one too few a secret.
"""

from __future__ import annotations

import re
from typing import Any

from reading.hostnames import split_address

_WORD = re.compile(r"[A-Za-z0-9]{12,}", re.ASCII)
_DIGIT = re.compile(r"[0-9]")
_LONG = 20
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_KNOWN = re.compile(
    r"(?:[spr]k|gh[a-z]|github_pat|glpat|xox[a-z]|key|token|secret)[-_]", re.IGNORECASE
)
"""How keys of many services begin."""
_BEFORE_KEYS = frozenset(
    f"{before}{name}{more}"
    for before in ("", "api", "api-", "api_", "access-", "access_")
    for name in ("key", "secret", "token")
    for more in ("", "s")
)
PLACE = {"description": "A key that is part of the address.", "isRequired": True, "isSecret": True}


def public_url(url: str) -> tuple[str, dict[str, Any]]:
    """The address with `{key}`, `{key2}` … where keys stand, and what the interface calls its variables."""
    parts = split_address(url)
    told: list[str] = []
    variables: dict[str, Any] = {}
    before = ""
    for segment in parts.path.split("/"):
        shown = segment
        if segment and (before in _BEFORE_KEYS or _is_like_a_key(segment)):
            name = f"key{len(variables) + 1}" if variables else "key"
            variables[name] = PLACE
            shown = f"{{{name}}}"
        told.append(shown)
        before = segment.lower()
    return parts._replace(path="/".join(told), query="").geturl(), variables


def _is_like_a_key(segment: str) -> bool:
    """By its look: words and dates between hyphens are shorter, and words have few capitals inside."""
    if set("=%:;@,") & set(segment) or _UUID.search(segment) or _KNOWN.match(segment):
        return True
    for found in _WORD.findall(segment):
        capitals = sum(map(str.isupper, found))
        if (
            _DIGIT.search(found)
            or 3 * capitals > len(found)
            or (len(found) >= _LONG and not found.islower())
        ):
            return True
    return False
