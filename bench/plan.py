"""How many sessions start when, how long each streams, and when all of them do at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from bench.figures import Session, Sessions
from bench.machine import family_seconds

SETTLE_SECONDS = 0.5
"""After the last start, before processor time is counted."""
TURN_SECONDS = 60.0
"""How long a short turn may take."""


@dataclass(frozen=True, slots=True)
class Load:
    """`sessions` conversations, `starts` of them beginning each second, all overlapping for a while."""

    sessions: int
    per_second: int = 50
    starts: float = 20.0
    overlap: float = 6.0

    @property
    def deltas(self) -> int:
        """So many that the first one still streams `overlap` seconds after the last began."""
        return round((self.sessions / self.starts + self.overlap) * self.per_second)

    @property
    def order(self) -> str:
        return f"bench stream {self.deltas} {self.per_second}"


@dataclass(frozen=True, slots=True)
class Turns:
    """`sessions` short answers, one a session, `starts` of them asked for each second."""

    sessions: int
    per_second: int = 50
    starts: float = 20.0
    deltas: int = 20

    @property
    def order(self) -> str:
        return f"bench stream {self.deltas} {self.per_second}"


Converse = Callable[[int, Session], Awaitable[None]]
"""Asks as the session of that number and fills it in; what it raises is the session's failure."""


async def run_turns(
    turns: Turns, converse: Converse, seconds: Callable[[], float]
) -> dict[str, Any]:
    """`ms`: by how much `seconds`, a clock of processor time, went on for each turn; and `failures`."""
    sessions = [Session(wanted=turns.deltas) for _ in range(turns.sessions)]
    await asyncio.sleep(SETTLE_SECONDS)
    began, used = time.monotonic(), seconds()

    async def one(number: int) -> None:
        await asyncio.sleep(max(0.0, began + number / turns.starts - time.monotonic()))
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await converse(number, sessions[number])
        except Exception as problem:
            sessions[number].failure = f"{type(problem).__name__}: {problem}"

    await asyncio.gather(*(one(number) for number in range(turns.sessions)))
    # A run's last words come behind its answer.
    await asyncio.sleep(SETTLE_SECONDS)
    spent = seconds() - used
    failures = {one.failure or "an answer has no end" for one in sessions if not one.ended}
    return {"ms": spent / turns.sessions * 1000, "failures": sorted(failures)[:5]}


async def run_load(load: Load, converse: Converse, watched: list[int]) -> Sessions:
    """Begin the sessions in their rhythm and watch processor time while all of them stream."""
    sessions = [Session(wanted=load.deltas) for _ in range(load.sessions)]
    began = time.monotonic()

    async def one(number: int) -> None:
        await asyncio.sleep(max(0.0, began + number / load.starts - time.monotonic()))
        length = load.deltas / load.per_second
        try:
            async with asyncio.timeout(length + 30):
                await converse(number, sessions[number])
        except Exception as problem:
            sessions[number].failure = f"{type(problem).__name__}: {problem}"

    async def watch() -> tuple[tuple[float, float], float, float]:
        last_start = load.sessions / load.starts
        await asyncio.sleep(last_start + SETTLE_SECONDS)
        at, used, own = time.monotonic(), family_seconds(watched), time.process_time()
        await asyncio.sleep(max(0.5, load.overlap - 2 * SETTLE_SECONDS))
        window = (at, time.monotonic())
        return window, family_seconds(watched) - used, time.process_time() - own

    watching = asyncio.ensure_future(watch())
    await asyncio.gather(*(one(number) for number in range(load.sessions)))
    window, watched_seconds, client_seconds = await watching
    return Sessions.of(
        sessions,
        window=window,
        watched_seconds=watched_seconds,
        client_seconds=client_seconds,
        deltas_per_second=load.sessions * load.per_second,
    )
