"""What a fetch may be authorised with: a token for addresses of one service, and for no other.

Whose token it is, and where it is kept, is the runner's side, reached through `Credentials` among a
context's extras. The token goes into the request and comes back in no answer.
"""

from __future__ import annotations

from typing import Protocol
from urllib.parse import unquote

from reading.hostnames import ascii_name, split_address

EXTRA = "credentials"
"""The name of the `Credentials` among a context's extras."""
HIDDEN = "[secret]"
"""Stands in an answer where the server repeated the token."""

_PORTS = {"http": 80, "https": 443}


class Credentials(Protocol):
    async def bearer_for(self, address: str) -> str:
        """The token that a request to exactly this address carries; empty for none. Raises
        `ToolError` where there should be one and it cannot be had."""
        ...


def one_spelling(url: str) -> str:
    """`url` with scheme and host in lower case, without a usual port and a slash at the end.

    Raises ValueError for what is no plain http or https address.
    """
    parts = split_address(url)
    host, port = (parts.hostname or "").rstrip("."), parts.port
    if parts.scheme not in _PORTS or not host or "@" in parts.netloc or parts.fragment:
        raise ValueError("no plain http or https address")
    if any(ord(character) <= 32 or ord(character) == 127 for character in url) or "\\" in url:
        raise ValueError("a space or a control character")
    host = ascii_name(host)
    shown = f"[{host}]" if ":" in host else host
    place = shown if port in (None, _PORTS[parts.scheme]) else f"{shown}:{port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}{query}"


def covers(service: str, address: str) -> bool:
    """Whether `address` is the service or lies below it: same scheme, host and port, and its path
    begins with the service's. A path that a server could read as another one is not below any."""
    try:
        whole, asked = one_spelling(service), one_spelling(address)
    except ValueError:
        return False
    ours, theirs = split_address(whole), split_address(asked)
    if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
        return False
    if not _is_plain(theirs.path):
        return False
    if ours.query and ours.query != theirs.query:
        return False
    return theirs.path == ours.path or theirs.path.startswith(f"{ours.path}/")


def _is_plain(path: str) -> bool:
    """No segment steps up, and none hides a slash."""
    for segment in path.split("/"):
        plain = unquote(unquote(segment))
        if plain.partition(";")[0] in {".", ".."} or "/" in plain or "\\" in plain:
            return False
    return True
