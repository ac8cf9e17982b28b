"""Ends a command that overfills a folder which no quota bounds.

Looks from outside a few times a second, so a folder can go over its limit by what is written
meanwhile. A folder that is over its limit when a command begins can be emptied but not written.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PERIOD = 0.25
"""Seconds between two looks; longer where a look takes long."""
LEFT_SECONDS = 2.0
"""The same where no command runs, but what one left."""
SHARE = 10
"""A look may take at most one part in so many of the time."""
STEPS_OF_A_FILE = 10
TRIES = 3
"""To look into a folder that somebody closes again and again."""


Unseen = Callable[[Sequence[Path]], int]
"""How many bytes are held beside folders without a name in them (`heldfiles`)."""


@dataclass(frozen=True, slots=True)
class Usage:
    size: int
    """Bytes on disk."""
    files: int


def measure(folders: Sequence[Path], most_files: int) -> Usage:
    """What the folders hold, however deep. Stops counting once there are more than `most_files` names."""
    count = _Count(most_files)
    for folder in folders:
        try:
            count.take(folder)
        except _Closed:
            count.files = most_files + 1
        except OSError:
            continue
    return Usage(count.size, count.files)


class _Closed(Exception):
    """Again and again, by who does nothing else meanwhile: nobody does that but to hide something."""


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAY_BE_LOOKED_INTO = 0o500

Below = list[tuple[str, int]]
"""Names of folders that are still to be looked into, with their modes."""


class _Count:
    """Goes from folder to folder by names that are never longer than one part of a path: a whole one may be
    longer than the system takes, and what lies there fills the disk all the same."""

    def __init__(self, most_files: int) -> None:
        self.size = self.files = 0
        self._most = most_files
        self._steps = STEPS_OF_A_FILE * (most_files + 1_000)
        """That may be taken back to a place where folders were moved meanwhile."""

    def take(self, root: Path) -> None:
        here = _begun(root)
        try:
            path: list[str] = []
            levels, known = [self._scan(here)], [_identity(here)]
            while self.files <= self._most:
                if levels[-1]:
                    name, mode = levels[-1].pop()
                    inside, below = self._looked_into(here, name, mode)
                    if inside is None:
                        continue
                    os.close(here)
                    here = inside
                    path.append(name)
                    levels.append(below)
                    known.append(_identity(here))
                    continue
                if not path:
                    return
                for held in (path, levels, known):
                    held.pop()
                above = _above(here)
                if above is None or _identity(above) != known[-1]:  # it was moved, or closed
                    if above is not None:
                        os.close(above)
                    above = self._back(root, path)
                    del levels[len(path) + 1 :], known[len(path) + 1 :]
                    known[-1] = _identity(above)
                os.close(here)
                here = above
        finally:
            os.close(here)

    def _looked_into(self, folder: int, name: str, mode: int) -> tuple[int | None, Below]:
        """The folder, open, with those in it; nothing where there are none."""
        inside = _entered(folder, name, mode)
        if inside is None:
            return None, []
        try:
            below = self._scan(inside)
        except OSError:
            below = []
        except _Closed:
            os.close(inside)
            raise
        if below:
            return inside, below
        os.close(inside)
        return None, []

    def _scan(self, folder: int) -> Below:
        below: Below = []
        with os.scandir(folder) as scan:
            for entry in scan:
                self.files += 1
                try:
                    status = _status(folder, entry)
                except OSError:
                    continue
                # What is taken, not what a sparse file claims.
                self.size += status.st_blocks * 512
                if stat.S_ISDIR(status.st_mode):
                    below.append((entry.name, status.st_mode))
                if self.files > self._most:
                    break
        return below

    def _back(self, root: Path, path: list[str]) -> int:
        """Where these names lead by now, as far as they are there; `path` is cut to them."""
        here = _begun(root)
        for depth, name in enumerate(tuple(path)):
            self._steps -= 1
            try:
                inside = _entered(here, name, _MAY_BE_LOOKED_INTO)
            except _Closed:
                os.close(here)
                raise
            if inside is None:
                del path[depth:]
                break
            os.close(here)
            here = inside
        if self._steps < 0:  # nobody moves so much but to hide something
            self.files = self._most + 1
        return here


def _begun(root: Path) -> int:
    """The folder itself, which may be closed to looks as well. Raises OSError and `_Closed`."""
    closed, denied = False, PermissionError()
    for _try in range(TRIES):
        if os.geteuid() != 0:
            with suppress(OSError):
                place = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                closed = _open_to_looks(place) or closed
        try:
            return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except PermissionError as problem:
            denied = problem
    raise _Closed if closed else denied


def _entered(folder: int, name: str, mode: int) -> int | None:
    """None: it is no folder any more, or somebody else's. Raises `_Closed`."""
    closed = denied = False
    for _try in range(TRIES):
        try:
            if mode & _MAY_BE_LOOKED_INTO != _MAY_BE_LOOKED_INTO and os.geteuid() != 0:
                flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                closed = _open_to_looks(os.open(name, flags, dir_fd=folder)) or closed
            return os.open(name, _FOLDER, dir_fd=folder)
        except OSError as problem:
            denied = isinstance(problem, PermissionError)
        mode = 0
        closed = _open_again(folder) or closed
    if closed and denied:
        raise _Closed
    return None


def _status(folder: int, entry: os.DirEntry[str]) -> os.stat_result:
    """Raises OSError where it is gone, or in somebody else's folder, and `_Closed`."""
    for _try in range(TRIES):
        try:
            return entry.stat(follow_symlinks=False)
        except PermissionError:
            if not _open_again(folder):
                raise
    raise _Closed


def _open_again(folder: int) -> bool:
    """It may have been closed while it was looked at: whether it was, and is open now."""
    if os.geteuid() != 0:
        with suppress(OSError):
            return _open_to_looks(os.dup(folder))
    return False


def _open_to_looks(place: int) -> bool:
    """Whoever owns a folder can write there without letting anybody look. `place` is closed; whether that
    was so. Raises OSError for somebody else's."""
    try:
        mode = stat.S_IMODE(os.fstat(place).st_mode)
        if mode & _MAY_BE_LOOKED_INTO == _MAY_BE_LOOKED_INTO:
            return False
        Path(f"/proc/self/fd/{place}").chmod(mode | _MAY_BE_LOOKED_INTO)
        return True
    finally:
        os.close(place)


def _above(folder: int) -> int | None:
    try:
        return os.open("..", _FOLDER, dir_fd=folder)
    except OSError:
        return None


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


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

    async def overfilled(self, *, period: float = PERIOD, unseen: Unseen | None = None) -> None:
        """Returns as soon as the folders hold more than they may, and more than they did; with `unseen`,
        together with what is held beside them."""
        before = self._last or Usage(0, 0)
        pause = period
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            now = await self._look()
            held = 0 if unseen is None else await asyncio.to_thread(unseen, self._folders)
            if now.size + held > max(self._size, before.size) or now.files > max(
                self._files, before.files
            ):
                return
            pause = max(period, (time.monotonic() - began) * SHARE)

    def keep_watch(
        self, end: Callable[[], Awaitable[object]], unseen: Unseen | None = None
    ) -> asyncio.Task[None]:
        """Between two commands, for what the first left running: `end` is called where that overfills the
        folders. To be cancelled when the next one begins, and when the shell ends."""

        async def watch() -> None:
            await self.overfilled(period=LEFT_SECONDS, unseen=unseen)
            await asyncio.shield(asyncio.ensure_future(end()))

        return asyncio.create_task(watch())

    def look_after(self) -> None:
        """Look once more in the background, so that the next command knows what this one left."""
        self._looking = asyncio.ensure_future(self._look())
