"""What a hostile program says in a line holds up nobody else's work."""

from __future__ import annotations

import asyncio
import time

import pytest

from mcpservers.stdio import spoken_to

MOST = 5 * 1024 * 1024
PARTS = 40_000
STALL = 0.05
"""Seconds of work in one go, where all runs wait."""


class Says:
    """A program that has said this and goes on listening."""

    alive, ending = True, ""

    def __init__(self, said: bytes) -> None:
        self._pieces = [said[at : at + 65_536] for at in range(0, len(said), 65_536)]
        self._over = asyncio.Event()

    async def read(self) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        await self._over.wait()
        return b""

    async def write(self, data: bytes) -> None:
        pass

    def last_errors(self) -> str:
        return ""

    async def close(self) -> None:
        self._over.set()


async def longest_stall() -> float:
    """Asked until it is cancelled: the longest that this thread worked without a pause."""
    longest, before = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0)
            longest = max(longest, (now := time.thread_time()) - before)
            before = now
    except asyncio.CancelledError:
        return longest


BEGIN, END = b'{"jsonrpc":"2.0","id":1,"result":{"text":"', b'"}}\n'
ROOM = MOST - 100


@pytest.mark.parametrize(
    "odd",
    [
        rb"\u0041" * (ROOM // 6),
        rb"\n" * (ROOM // 2),
        rb"\ud800" * (ROOM // 6),
        b"\xff" * ROOM,
    ],
    ids=["escapes", "line ends", "halves", "no text"],
)
async def test_a_long_line_is_read_while_others_go_on(odd: bytes) -> None:
    told: list[str] = []
    stall = asyncio.create_task(longest_stall())
    await asyncio.sleep(0)
    async with spoken_to(
        Says(BEGIN + odd + END), most_bytes=MOST, most_parts=PARTS, give_up=told.append
    ) as (heard, _said):
        message = await heard.receive()
    stall.cancel()
    assert not isinstance(message, Exception), told
    assert await stall < STALL
