"""The machine as the bench sees it: cores, processor time of processes, memory, who else was at work.

Linux only, like the figures: pinning and the clocks of other processes are the kernel's.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

SERVER_CORE = 0
"""The core the measured process is pinned to; the load and the stand-in have the others."""


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def server_cores() -> set[int]:
    return {cores()[SERVER_CORE]}


def load_cores() -> set[int]:
    return set(cores()[1:2]) or set(cores())


def service_cores() -> set[int]:
    """Where the stand-in lives: a core of its own where there are three, else the load's."""
    return set(cores()[2:3]) or load_cores()


def processor_seconds(pid: int) -> float:
    """User and system time of all threads of a process so far; its children do not count."""
    # clock_getcpuclockid(3): the kernel's own name for the clock of another process.
    return time.clock_gettime((~pid << 3) | 2)


def family(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in children.read_text().split()]
    return found


def family_seconds(pids: Iterable[int]) -> float:
    total = 0.0
    for pid in pids:
        for one in family(pid):
            with contextlib.suppress(OSError):
                total += processor_seconds(one)
    return total


def memory_kb(pids: Iterable[int]) -> int:
    """Resident memory of processes and their descendants, shared pages counted once a process."""
    total = 0
    for pid in pids:
        for one in family(pid):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{one}/status").read_text()
                line = next((ln for ln in text.splitlines() if ln.startswith("VmRSS:")), "")
                total += int(line.split()[1]) if line else 0
    return total


def description() -> dict[str, str | int]:
    """What a reader needs to place the figures; nothing that names this machine."""
    model = ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": model or platform.machine(),
        "cores": len(cores()),
        "memory_gb": round(memory),
        "system": platform.system(),
        "python": platform.python_version(),
    }
