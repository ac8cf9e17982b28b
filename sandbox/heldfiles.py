"""What processes of a sandbox hold of a disk without a name: files that are open or mapped, and were removed.

No look into a folder finds them, and they take their place until they are let go of. Read from `/proc`, of
each thread, which may have files of its own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from reading.digits import digits_of

MOST_PROCESSES = 5_000
"""That are looked at."""
MOST_FILES = 50_000
"""That are looked at in all, each time that one is open or a part of it mapped: nobody holds so many but to
hide something."""
MOST_BYTES = 16 * 1024 * 1024
"""Of what is told of mapped files in all."""
EVERYTHING = 1 << 62
"""What is said of who holds more than that."""
_REMOVED = b" (deleted)"

Held = tuple[tuple[int, int], int]
"""A file, by device and number, and how many bytes of it."""


class _TooMuch(Exception):
    pass


def held_without_a_name(first: int, folders: Sequence[Path]) -> int:
    """Bytes of such files beside these folders, of a process and all that came from it."""
    devices = set()
    for folder in folders:
        with suppress(OSError):
            devices.add(folder.stat().st_dev)
    look = _Look()
    found: dict[tuple[int, int], int] = {}
    try:
        for threads in _with_descendants(first):
            for place, size in look.held_by(threads):
                if place[0] in devices:
                    found[place] = max(size, found.get(place, 0))
    except _TooMuch:
        return EVERYTHING
    return sum(found.values())


def _with_descendants(first: int) -> Iterator[list[Path]]:
    """The threads of each."""
    waiting, seen = [first], {first}
    while waiting and len(seen) < MOST_PROCESSES:
        threads: list[Path] = []
        with suppress(OSError, ValueError):
            threads += Path(f"/proc/{waiting.pop()}/task").iterdir()
        for thread in threads:
            with suppress(OSError, ValueError):
                new = set(map(int, (thread / "children").read_text().split())) - seen
                seen |= new
                waiting += new
        yield threads


class _Look:
    """Raises `_TooMuch` where there is no end of it."""

    def __init__(self) -> None:
        self._files, self._bytes = MOST_FILES, MOST_BYTES

    def held_by(self, threads: Sequence[Path]) -> Iterator[Held]:
        """By a process, the first of whose threads may have ended before the others."""
        for thread in threads:
            with suppress(OSError):
                yield from self._open_in(thread)
        for thread in threads:
            with suppress(OSError):
                if told := self._told(thread / "maps"):
                    yield from self._mapped(told)
                    return  # they have the same

    def _open_in(self, thread: Path) -> Iterator[Held]:
        with os.scandir(thread / "fd") as descriptors:
            for each in descriptors:
                self._count()
                with suppress(OSError):
                    status = each.stat()
                    if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                        yield (status.st_dev, status.st_ino), status.st_blocks * 512

    def _told(self, place: Path) -> bytes:
        with place.open("rb") as file:
            told = file.read(self._bytes)
        self._bytes -= len(told)
        if self._bytes <= 0:
            raise _TooMuch
        return told

    def _mapped(self, told: bytes) -> Iterator[Held]:
        # By lines as the kernel ends them: names of files may hold what others take for an end.
        for line in told.split(b"\n"):
            if line.endswith(_REMOVED):
                self._count()
                area, _rights, offset, device, number = line.split(maxsplit=5)[:5]
                begin, end = map(_number, area.split(b"-"))
                major, minor = map(_number, device.split(b":"))
                # What is mapped of it may be less than what it takes, and a hole may be mapped.
                yield (os.makedev(major, minor), int(number)), _number(offset) + end - begin

    def _count(self) -> None:
        self._files -= 1
        if self._files < 0:
            raise _TooMuch


def _number(text: bytes) -> int:
    """As the kernel writes addresses and devices."""
    return digits_of(text, 16, longest=16) or 0
