"""What processes of a sandbox hold of a disk without a name: files that are open or mapped, and were removed.

No look into a folder finds them, and they take their place until they are let go of. Read from `/proc`.
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


def held_without_a_name(first: int, folders: Sequence[Path]) -> int:
    """Bytes of such files beside these folders, of a process and all that came from it."""
    devices = set()
    for folder in folders:
        with suppress(OSError):
            devices.add(folder.stat().st_dev)
    found: dict[tuple[int, int], int] = {}
    for pid in _with_descendants(first):
        with suppress(OSError):
            for place, size in _held_by(pid):
                if place[0] in devices:
                    found[place] = max(size, found.get(place, 0))
    return sum(found.values())


def _with_descendants(first: int) -> Iterator[int]:
    waiting, seen = [first], {first}
    while waiting and len(seen) < MOST_PROCESSES:
        pid = waiting.pop()
        yield pid
        with suppress(OSError, ValueError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                children = (task / "children").read_text().split()
                new = set(map(int, children)) - seen
                seen |= new
                waiting += new


def _held_by(pid: int) -> Iterator[tuple[tuple[int, int], int]]:
    with os.scandir(f"/proc/{pid}/fd") as descriptors:
        for each in descriptors:
            with suppress(OSError):
                status = each.stat()
                if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                    yield (status.st_dev, status.st_ino), status.st_blocks * 512
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        if line.endswith(" (deleted)"):
            area, _rights, offset, device, number = line.split(maxsplit=5)[:5]
            begin, end = map(_number, area.split("-"))
            major, minor = map(_number, device.split(":"))
            # What is mapped of it may be less than what it takes, and a hole may be mapped.
            yield (os.makedev(major, minor), int(number)), _number(offset) + end - begin


def _number(text: str) -> int:
    """As the kernel writes addresses and devices."""
    return digits_of(text.encode(), 16, longest=16) or 0
