"""What one `echo` costs through each backend, next to the same without a sandbox."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from .contract import Mount, Mounts, SandboxBackend
from .policy import Policy

COMMAND = "echo hello"
PAUSE = 0.02
"""Seconds between two commands; an agent's come much further apart."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of one command, the median of several."""

    way: str
    median: float
    ratio: float
    """To the same command without a sandbox, measured in turn with it."""


async def measure(backend: SandboxBackend, *, rounds: int = 40) -> list[Cost]:
    """The costs of `none`, `<backend>` (a sandbox for each command) and `<backend> shell`.

    The three are measured in turn, so that a busy machine is busy for all of them.
    """
    with tempfile.TemporaryDirectory(prefix="agentsite-overhead-") as name:
        workspace = await asyncio.to_thread(_workspace, Path(name))
        mounts = Mounts(Mount(workspace, Path("/workspace"), writable=True))
        policy = Policy(require=())
        shell = await backend.open_shell(policy, mounts)
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "none": _plain,
            backend.name: lambda: backend.run(COMMAND, policy, mounts),
            f"{backend.name} shell": lambda: shell.run(COMMAND),
        }
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _round in range(rounds):
            for way, act in ways.items():
                await asyncio.sleep(PAUSE)
                began = time.perf_counter()
                await act()
                taken[way].append((time.perf_counter() - began) * 1_000)
        await shell.close()
    medians = {way: statistics.median(times) for way, times in taken.items()}
    return [Cost(way, median, median / medians["none"]) for way, median in medians.items()]


def _workspace(folder: Path) -> Path:
    folder.chmod(0o711)
    workspace = folder / "workspace"
    workspace.mkdir(mode=0o700)
    return workspace


async def _plain() -> None:
    process = await asyncio.create_subprocess_exec(
        *("/bin/bash", "--norc", "--noprofile", "-c", COMMAND),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await process.communicate()
