"""Whether two addresses are the same server as far as that shows: whatever stands in their query, and however
they are spelt.

Rules name a server by what it is called here. Whoever calls one by a second name would escape them.
"""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import normpath
from urllib.parse import unquote

from reading.hostnames import split_address

from .models import McpServer


def place_of(url: str) -> tuple[str, int, str]:
    """Host, port and path of an address that `addresses.check_url` has taken."""
    parts = split_address(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    path = normpath(f"/{unquote(parts.path)}").strip("/").casefold()
    return parts.hostname or "", port, path


def covering(url: str, servers: Iterable[McpServer]) -> bool:
    """Whether one of the servers that belong to more than one person stands there."""
    place = place_of(url)
    return any(each.owner_id is None and place_of(each.url) == place for each in servers)


def is_covered(server: McpServer, servers: Iterable[McpServer]) -> bool:
    """Whether it is a person's own at the place of a broader one, which counts, also switched off."""
    return server.owner_id is not None and covering(server.url, servers)
