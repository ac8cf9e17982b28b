"""How long an event loop stood still while something ran, told apart from a machine that was busy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

MOST_SECONDS = 0.05
"""The longest an event loop may stand still, whatever anybody has sent."""


async def longest_stall(run: Callable[[], Awaitable[Any]], *, tries: int = 3) -> float:
    """Seconds of this process's own work between two beats of the loop, at worst, while `run` ran.

    What other processes took of the machine is not counted. The best of several tries, because a
    collection of garbage is nobody's attack.
    """
    found = []
    for _try in range(tries):
        found.append(await _one(run))
        if found[-1] <= MOST_SECONDS:
            break
    return min(found)


async def _one(run: Callable[[], Awaitable[Any]]) -> float:
    worst = 0.0
    beating = asyncio.Event()

    async def beat() -> None:
        nonlocal worst
        wall, worked = time.perf_counter(), time.process_time()
        while True:
            beating.set()
            await asyncio.sleep(0.001)
            now, work = time.perf_counter(), time.process_time()
            worst = max(worst, min(now - wall, work - worked))
            wall, worked = now, work

    heart = asyncio.ensure_future(beat())
    await beating.wait()
    try:
        await run()
        await asyncio.sleep(0)
    finally:
        await asyncio.sleep(0.002)
        heart.cancel()
    return worst
