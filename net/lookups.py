"""From a name to the addresses that may be connected to: looked up here, and every one of them judged.

One bad address among good ones is how names are rebound, so it refuses them all. Whoever connects uses
the very addresses that were judged. What a judge allows is its caller's decision.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address

from net.addresses import Address

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Judge = Callable[[str, Address, int], None]
"""Of a host, an address it leads to and a port. Raises what its caller is to be told."""


class UnknownHost(Exception):
    """A name leads nowhere now."""


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(entry[4][0]) for entry in found]


async def judged_addresses(
    host: str,
    port: int,
    judge: Judge,
    *,
    seconds: float,
    resolve: Resolve = resolve_by_system,
) -> list[str]:
    """What `host` leads to now, all of it allowed. Raises `UnknownHost`, and what the judge raises."""
    try:
        async with asyncio.timeout(seconds):
            found = await resolve(host, port)
    except (OSError, UnicodeError, TimeoutError) as problem:
        raise UnknownHost(f"the name {host} cannot be resolved") from problem
    return judged(host, port, judge, found)


def judged(host: str, port: int, judge: Judge, found: Iterable[str]) -> list[str]:
    """The same for addresses that were looked up already."""
    addresses = list(dict.fromkeys(text.partition("%")[0] for text in found))
    for text in addresses:
        judge(host, ip_address(text), port)
    if not addresses:
        raise UnknownHost(f"the name {host} has no address")
    return addresses
