"""From a name to the addresses that may be connected to: looked up here, and every one of them judged.

One bad address among good ones is how names are rebound, so it refuses them all. Whoever connects uses
the very addresses that were judged. What a judge allows is its caller's decision.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from ipaddress import ip_address

from net.addresses import Address

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Judge = Callable[[str, Address, int], None]
"""Of a host, an address it leads to and a port. Raises what its caller is to be told."""


AT_ONCE = 4
"""Threads that look names up for other threads; what the system does cannot be broken off."""
_looking = threading.BoundedSemaphore(AT_ONCE)
MOST_AT_ONCE = 256
"""Names that are looked up at once for loops; and as many more that commands and agents choose."""
_looking_for_loops = threading.BoundedSemaphore(MOST_AT_ONCE)
_looking_for_agents = threading.BoundedSemaphore(MOST_AT_ONCE)


class UnknownHost(Exception):
    """A name leads nowhere now."""


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Raises `UnknownHost`, `OSError` and `UnicodeError`."""
    # No thread of the loop: those do everybody's work, and name servers may say nothing for long.
    return await asyncio.wrap_future(_looked_up(host, port, _looking_for_loops))


async def resolve_for_agents(host: str, port: int) -> Sequence[str]:
    """The same of names that commands and agents choose: they take the services that the server needs no
    place. Raises as it does."""
    return await asyncio.wrap_future(_looked_up(host, port, _looking_for_agents))


def _looked_up(host: str, port: int, room: threading.BoundedSemaphore) -> Future[list[str]]:
    """By a thread of its own. Where as many look at once as may, the name is unknown there and then."""
    if not room.acquire(blocking=False):
        raise UnknownHost(f"the name {host} was not looked up: too many are at the moment")
    found: Future[list[str]] = Future()
    found.set_running_or_notify_cancel()

    def look() -> None:
        try:
            entries = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
            found.set_result([str(entry[4][0]) for entry in entries])
        except Exception as problem:
            found.set_exception(problem)
        finally:
            room.release()

    # A daemon: a process that ends does not wait for somebody's name server.
    try:
        threading.Thread(target=look, name="agentsite-look-up", daemon=True).start()
    except RuntimeError as problem:  # the system has none left
        room.release()
        raise UnknownHost(f"the name {host} was not looked up: {problem}") from problem
    return found


def few_at_once(resolve: Resolve, most: int) -> Resolve:
    """For one asker: only so many names are under way, also those that she waits for no more."""
    room = asyncio.Semaphore(most)

    def is_over(looking: asyncio.Future[Sequence[str]]) -> None:
        room.release()
        if not looking.cancelled():
            looking.exception()  # looked at, whether or not somebody waits

    async def look(host: str, port: int) -> Sequence[str]:
        await room.acquire()
        looking = asyncio.ensure_future(resolve(host, port))
        looking.add_done_callback(is_over)
        return await asyncio.shield(looking)

    return look


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


def judged_in_time(host: str, port: int, judge: Judge, *, seconds: float) -> list[str]:
    """`judged_addresses` by the system, for a thread, which is kept for `seconds` at most."""
    found = _looked_up(host, port, _looking)
    try:
        return judged(host, port, judge, found.result(seconds))
    except (OSError, UnicodeError) as problem:  # a timeout is one of the first
        raise UnknownHost(f"the name {host} cannot be resolved") from problem


def judged(host: str, port: int, judge: Judge, found: Iterable[str]) -> list[str]:
    """The same for addresses that were looked up already."""
    addresses = list(dict.fromkeys(text.partition("%")[0] for text in found))
    for text in addresses:
        judge(host, ip_address(text), port)
    if not addresses:
        raise UnknownHost(f"the name {host} has no address")
    return addresses
