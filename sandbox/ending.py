"""How a running command comes to its end: by itself, or by what ends it from outside."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import Any

from .capture import PipeReader
from .contract import KilledBy
from .diskwatch import DiskWatch, Unseen


async def wait_for_end(
    ended: asyncio.Future[Any],
    *,
    timeout: float,  # noqa: ASYNC109
    interrupted: asyncio.Event,
    readers: Sequence[PipeReader],
    disk: DiskWatch | None,
    unseen: Unseen | None = None,
) -> KilledBy | None:
    """Wait until `ended` is done, or something demands that the command is killed, and say what.

    Raises what a listener of the output raised.
    """
    demands: dict[asyncio.Future[Any], KilledBy] = {}

    def demand(task: asyncio.Future[Any], reason: KilledBy) -> None:
        demands[task] = reason

    demand(asyncio.ensure_future(interrupted.wait()), KilledBy.INTERRUPT)
    for reader in readers:
        demand(asyncio.ensure_future(reader.broken()), KilledBy.OUTPUT)
    if disk is not None:
        demand(asyncio.ensure_future(disk.overfilled(unseen=unseen)), KilledBy.DISK)
    try:
        await asyncio.wait([ended, *demands], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            return None
        for task, reason in demands.items():
            if task.done():
                task.result()
                return reason
        return KilledBy.TIMEOUT
    finally:
        for task in demands:
            task.cancel()


def limit_that_killed(code: int, *, oom: bool) -> KilledBy | None:
    """What an exit code says about the limit that ended a command."""
    number = -code if code < 0 else code - 128
    if oom:
        return KilledBy.MEMORY
    if number == signal.SIGXCPU:
        return KilledBy.CPU
    if number == signal.SIGXFSZ:
        return KilledBy.FILE_SIZE
    return None
