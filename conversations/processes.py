"""What this machine says of a process by its number: whether it runs, and which one it is.

Whose process that was, and what becomes of its work, is `claims`' and `backgroundrows`' part.
"""

from __future__ import annotations

import os
from pathlib import Path

ENDED = "Z"
"""The state of one whose parent has not asked how it ended, as in a container without an init."""


def runs(pid: int) -> bool:
    """Whether a process of that number runs here. It may be another one than was meant."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _fields(pid)[:1] != [ENDED]


def began(pid: int) -> str:
    """When it did, in the kernel's ticks, which tells it from a later one of its number; "" when none
    runs."""
    state, *rest = _fields(pid) or [ENDED]
    return "" if state == ENDED else rest[18]


def boot() -> str:
    """Which start of the machine this is; "" where that cannot be seen."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _fields(pid: int) -> list[str]:
    """What the kernel lists from the state on; nothing where there is no such process, or no such list."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()
