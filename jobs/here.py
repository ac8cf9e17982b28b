"""Starts jobs on this process's engine: those that were asked for, and those that recur.

`dispatch` decides whether a job runs here; a worker comes here with what the broker sent it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import Future
from functools import partial
from typing import Any

from .engine import engine
from .registry import Job, find, recurring

logger = logging.getLogger(__name__)


def begin(name: str, arguments: dict[str, Any]) -> Future[None]:
    """Have the job run on the engine. The future is done once it has begun, which may take until
    others have ended, and cancelled when the process stops before that."""
    found = find(name)
    work = partial(_perform, found, arguments)
    if found.in_turn:
        return engine.begin(f"{name} {json.dumps(arguments, sort_keys=True)}", work)
    engine.submit(work)
    begun: Future[None] = Future()
    begun.set_result(None)
    return begun


def start_recurring() -> None:
    """Start every recurring job now and then again and again, for as long as the process lives."""
    for found in recurring():
        engine.submit(partial(_repeat, found))


def start_recurring_once() -> None:
    """For a worker that comes up: what its predecessor left is found at once."""
    for found in recurring():
        engine.submit(partial(_perform, found, {}))


async def _perform(found: Job, arguments: dict[str, Any]) -> None:
    await found.function(**arguments)


async def _repeat(found: Job) -> None:
    while not engine.draining:
        try:
            await found.function()
        except Exception:
            logger.exception("the recurring job %s failed", found.name)
        await asyncio.sleep(found.seconds)
