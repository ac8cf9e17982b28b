"""A policy's resources as the operating system's limits of one process."""

from __future__ import annotations

from collections.abc import Mapping

from .policy import Resources

MB = 1024 * 1024
Limits = dict[str, tuple[int, int]]
"""Name in the module `resource` to soft and hard limit."""


def limits_of(resources: Resources, *, each_memory: bool, full: bool = False) -> Limits:
    """`each_memory`: bound the memory of each process, where nothing bounds all of them together.
    `full`: the workspace is; files can be removed but not written."""
    size = 0 if full else resources.file_mb * MB
    found: Limits = {
        # The soft limit tells a process why it ends; the hard one ends it if it does not listen.
        "RLIMIT_CPU": (resources.cpu_seconds, resources.cpu_seconds + 2),
        "RLIMIT_FSIZE": (size, size),
        "RLIMIT_NOFILE": (resources.open_files, resources.open_files),
        "RLIMIT_NPROC": (resources.pids, resources.pids),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_MEMLOCK": (64 * 1024, 64 * 1024),
        "RLIMIT_MSGQUEUE": (0, 0),
    }
    if each_memory:
        # Not RLIMIT_AS: runtimes reserve address space many times larger than what they use.
        found["RLIMIT_DATA"] = (resources.memory_mb * MB, resources.memory_mb * MB)
    return found


def as_ulimits(limits: Mapping[str, tuple[int, int]]) -> str:
    """The same as commands of bash, for a sandbox in which no Python starts the command."""
    flags = {
        "RLIMIT_CPU": ("t", 1),
        "RLIMIT_FSIZE": ("f", 1_024),
        "RLIMIT_NOFILE": ("n", 1),
        "RLIMIT_NPROC": ("u", 1),
        "RLIMIT_CORE": ("c", 1_024),
        "RLIMIT_MEMLOCK": ("l", 1_024),
        "RLIMIT_MSGQUEUE": ("q", 1),
        "RLIMIT_DATA": ("d", 1_024),
    }
    # A limit that is lower already cannot be raised, and need not be.
    return "".join(
        f"ulimit -S -{flags[name][0]} {soft // flags[name][1]} 2>/dev/null;"
        f"ulimit -H -{flags[name][0]} {hard // flags[name][1]} 2>/dev/null;"
        for name, (soft, hard) in limits.items()
    )
