"""How long an event loop stood still while something ran, told apart from a machine that was busy."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

MOST_SECONDS = 0.05
"""The longest an event loop may stand still, whatever anybody has sent."""

COUNTED, COUNTED_SECONDS = 200_000, 0.005
"""How far a thread counts, and how long that takes it where MOST_SECONDS is to hold."""


def seconds_of_work(run: Callable[[], Any], *, tries: int = 3) -> float:
    """Seconds for which this process worked while `run` ran, without those in which others had the
    machine. The best of several tries, none of which knows what the ones before it read."""
    found = []
    for _try in range(tries):
        cast(Any, urlsplit).cache_clear()
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


async def longest_stall(run: Callable[[], Awaitable[Any]], *, tries: int = 3) -> float:
    """Seconds of this process's own work between two beats of the loop, at worst, while `run` ran.

    What other processes took of the machine is not counted: neither the time in which nothing of this
    one worked, nor that in which the loop was ready and had no processor. The best of several tries,
    because a collection of garbage is nobody's attack.
    """
    found = []
    for _try in range(tries):
        found.append(await _one(run))
        if found[-1] <= MOST_SECONDS:
            break
    return min(found)


async def is_bearable(stall: float, *, times: int = 1) -> bool:
    """Whether the loop stood still for no longer than `times` MOST_SECONDS. On a slow machine that is longer;
    and where two threads that merely count hold it up for longer, half as much again as these do: which
    thread gets the interpreter next is a draw there as well."""
    if stall <= times * MOST_SECONDS:
        return True
    drawn = [await _one(_two_that_count) for _try in range(3)]
    slower = min(_counted() for _try in range(3)) / COUNTED_SECONDS
    return stall <= times * max(slower * MOST_SECONDS, 1.5 * max(drawn))


async def _two_that_count() -> None:
    await asyncio.gather(asyncio.to_thread(_count), asyncio.to_thread(_count))


def _count() -> None:
    ends = time.perf_counter() + 0.4
    while time.perf_counter() < ends:
        pass


def _counted() -> float:
    began = time.thread_time()
    for _number in range(COUNTED):
        pass
    return time.thread_time() - began


def _ready_without_a_processor() -> float:
    """Seconds that this thread could have worked, had the machine had a processor for it."""
    if sys.platform != "linux":
        return 0.0
    told = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


def _now() -> tuple[float, float]:
    return time.perf_counter() - _ready_without_a_processor(), time.process_time()


async def _one(run: Callable[[], Awaitable[Any]]) -> float:
    worst = 0.0
    beating = asyncio.Event()

    async def beat() -> None:
        nonlocal worst
        before, worked = _now()
        while True:
            beating.set()
            await asyncio.sleep(0.001)
            now, work = _now()
            worst = max(worst, min(now - before, work - worked))
            before, worked = now, work

    heart = asyncio.ensure_future(beat())
    await beating.wait()
    try:
        await run()
        await asyncio.sleep(0)
    finally:
        await asyncio.sleep(0.002)
        heart.cancel()
    return worst
