"""Whether two addresses are the same server as far as that shows: whatever stands in their query, and however
they are spelt.

A program is what starts it, to the letter. Rules name a server by what it is called here: whoever calls
one by a second name would escape them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from posixpath import basename, normpath
from urllib.parse import unquote

from reading.hostnames import split_address
from sandbox.images import is_image

from .models import McpServer

Place = tuple[str, int, str]


def place_of(url: str, argv: Sequence[str] = ()) -> Place:
    """Host, port and path of an address that `addresses.check_url` has taken; or of a program its line."""
    if argv:
        # An image is its digest, whatever stands in front of that.
        program = argv[0].rpartition("@")[2] if is_image(argv) else basename(argv[0])
        return "", 0, shlex.join([program, *argv[1:]])
    parts = split_address(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    path = normpath(f"/{unquote(parts.path)}").strip("/").casefold()
    return parts.hostname or "", port, path


def covering(place: Place, servers: Iterable[McpServer]) -> bool:
    """Whether one of the servers that belong to more than one person stands there."""
    return any(each.owner_id is None and place_of(each.url, each.argv) == place for each in servers)


def is_covered(server: McpServer, servers: Iterable[McpServer]) -> bool:
    """Whether it stands at the place of a broader one, which counts, also switched off: a person's own, or an
    agent's at that of everybody's or its organisation's."""
    if server.owner_id is None and server.agent_id is None:
        return False
    broader = (each for each in servers if server.owner_id is not None or each.agent_id is None)
    return covering(place_of(server.url, server.argv), broader)
