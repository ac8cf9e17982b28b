"""Control groups, where the server may write them: memory and processes of a whole sandbox.

Knows both versions. `find` says by trying what can be had; where nothing can, sandboxes have only
the limits of single processes and say so.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NAME = "agentsite"
SWAP_FILES = ("memory.memsw.limit_in_bytes", "memory.swap.max")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A folder in which groups can be made, and for what."""

    memory: Path | None
    pids: Path | None
    version: int
    problem: str = ""
    """Why something is missing."""


class Group:
    """One sandbox's group: made by `Hierarchy`, entered by `prefix`, removed when it is over."""

    def __init__(self, hierarchy: Hierarchy, *, memory_mb: int, pids: int) -> None:
        self._hierarchy = hierarchy
        name = f"{NAME}-{os.getpid()}-{secrets.token_hex(6)}"
        self._folders: list[Path] = []
        self._memory = self._pids = None
        try:
            if hierarchy.memory is not None:
                self._memory = self._make(hierarchy.memory / name)
                self._write_memory(self._memory, memory_mb * 1024 * 1024)
            if hierarchy.pids is not None:
                self._pids = self._make(hierarchy.pids / name)
                (self._pids / "pids.max").write_text(str(pids))
        except OSError:
            self.remove()
            raise

    def _make(self, folder: Path) -> Path:
        if folder not in self._folders:
            folder.mkdir()
            self._folders.append(folder)
        return folder

    def _write_memory(self, folder: Path, size: int) -> None:
        if self._hierarchy.version == 1:
            (folder / "memory.limit_in_bytes").write_text(str(size))
        else:
            (folder / "memory.max").write_text(str(size))
        for name in SWAP_FILES:
            swap = folder / name
            if swap.exists():
                swap.write_text(str(size) if self._hierarchy.version == 1 else "0")

    def prefix(self) -> list[str]:
        """What stands before a command so that it and all it starts are in the group from the start."""
        enter = " && ".join(f'echo 0 > "{folder}/cgroup.procs"' for folder in self._folders)
        return ["/bin/sh", "-c", f'{enter} && exec "$@"', "sh"] if enter else []

    def oom_kills(self) -> int:
        """How many processes of the group were killed for want of memory."""
        if self._memory is None:
            return 0
        name = "memory.oom_control" if self._hierarchy.version == 1 else "memory.events"
        try:
            lines = (self._memory / name).read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

    def members(self) -> list[int]:
        found: set[int] = set()
        for folder in self._folders:
            try:
                found.update(map(int, (folder / "cgroup.procs").read_text().split()))
            except OSError:
                continue
        return sorted(found)

    def remove(self) -> None:
        """Kill what is left and take the group away. Blocks for a few milliseconds at most."""
        for attempt in range(50):
            for pid in self.members():
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            left = []
            for folder in self._folders:
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    continue
                except OSError:
                    left.append(folder)
            self._folders = left
            if not left:
                return
            time.sleep(0.002 * (attempt + 1))


@lru_cache(maxsize=1)
def find() -> Hierarchy:
    """What this process may use, found by making a group and taking it away again."""
    candidates = [_version_two(), _version_one()]
    problems = []
    for hierarchy in candidates:
        if hierarchy.memory is None and hierarchy.pids is None:
            problems.append(hierarchy.problem)
            continue
        try:
            group = Group(hierarchy, memory_mb=64, pids=8)
        except OSError as problem:
            problems.append(f"{problem.filename or ROOT}: {problem.strerror}")
            continue
        group.remove()
        return hierarchy
    return Hierarchy(None, None, 0, "; ".join(filter(None, problems)) or "there are none")


def _version_one() -> Hierarchy:
    memory, pids = ROOT / "memory", ROOT / "pids"
    usable = {
        name: folder
        for name, folder in (("memory", memory), ("pids", pids))
        if (folder / "cgroup.procs").exists() and os.access(folder, os.W_OK)
    }
    problem = "" if usable else "control groups (version 1) cannot be written by the server's user"
    return Hierarchy(usable.get("memory"), usable.get("pids"), 1, problem)


def _version_two() -> Hierarchy:
    """A folder beside or below our own group whose children have the controllers."""
    mount = ROOT if (ROOT / "cgroup.controllers").exists() else ROOT / "unified"
    if not (mount / "cgroup.controllers").exists():
        return Hierarchy(None, None, 2, "")
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return Hierarchy(None, None, 2, "")
    own = next((line[3:] for line in lines if line.startswith("0::")), "/")
    here = mount / own.lstrip("/")
    for folder in (here, here.parent):
        try:
            controllers = (folder / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if os.access(folder, os.W_OK) and controllers:
            return Hierarchy(
                folder if "memory" in controllers else None,
                folder if "pids" in controllers else None,
                2,
                "",
            )
    return Hierarchy(
        None, None, 2, "no control group (version 2) with controllers is delegated to the server"
    )
