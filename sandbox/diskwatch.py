"""Ends a command that overfills a folder which no quota bounds.

Looks from outside a few times a second, so a folder can go over its limit by what is written
meanwhile. A folder that is over its limit when a command begins can be emptied but not written.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PERIOD = 0.25
"""Seconds between two looks; longer where a look takes long."""
SHARE = 10
"""A look may take at most one part in so many of the time."""


@dataclass(frozen=True, slots=True)
class Usage:
    size: int
    """Bytes on disk."""
    files: int


def measure(folders: Sequence[Path], most_files: int) -> Usage:
    """What the folders hold. Stops counting once there are more than `most_files` names."""
    size = files = 0
    waiting: list[str] = [str(folder) for folder in folders]
    while waiting and files <= most_files:
        try:
            with os.scandir(waiting.pop()) as scan:
                for entry in scan:
                    files += 1
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    # What is taken, not what a sparse file claims.
                    size += status.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if files > most_files:
                        break
        except OSError:
            continue
    return Usage(size, files)


class DiskWatches:
    """The watches of a backend, so that what is known of a workspace outlasts its sandboxes."""

    MOST = 1_000

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Path, ...], int, int], DiskWatch] = {}

    def watch(self, folders: Sequence[Path], *, size: int, files: int) -> DiskWatch:
        key = (tuple(folders), size, files)
        if key not in self._known:
            if len(self._known) >= self.MOST:
                self._known.clear()
            self._known[key] = DiskWatch(folders, size=size, files=files)
        return self._known[key]


class DiskWatch:
    """Watches the writable folders of one sandbox while its commands run, one after the other."""

    def __init__(self, folders: Sequence[Path], *, size: int, files: int) -> None:
        self._folders = tuple(folders)
        self._size = size
        self._files = files
        self._last: Usage | None = None
        self._looking: asyncio.Task[Usage] | None = None

    def _over(self, usage: Usage) -> bool:
        return usage.size > self._size or usage.files > self._files

    async def _look(self) -> Usage:
        counted = max(self._files, self._last.files if self._last else 0)
        usage = await asyncio.to_thread(measure, self._folders, counted)
        self._last = usage
        return usage

    async def is_full(self) -> bool:
        """Is there no room left for what a command may want to write?"""
        if self._looking is not None:
            await asyncio.wait([self._looking])
            self._looking = None
        if self._last is None or self._over(self._last):
            return self._over(await self._look())
        return False

    async def overfilled(self, *, period: float = PERIOD) -> None:
        """Returns as soon as the folders hold more than they may, and more than they did."""
        before = self._last or Usage(0, 0)
        pause = period
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            now = await self._look()
            if now.size > max(self._size, before.size) or now.files > max(
                self._files, before.files
            ):
                return
            pause = max(period, (time.monotonic() - began) * SHARE)

    def look_after(self) -> None:
        """Look once more in the background, so that the next command knows what this one left."""
        self._looking = asyncio.ensure_future(self._look())
