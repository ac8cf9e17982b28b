"""One command in a sandbox of its own whose first process is the command's shell itself.

The fast way for backends that need no supervisor inside.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from .capture import PipeReader, collectors
from .cgroups import Group
from .contract import KilledBy, OnOutput, Result, SandboxFailed
from .diskwatch import DiskWatch
from .ending import limit_that_killed, wait_for_end
from .heldfiles import held_without_a_name
from .policy import Resources
from .supervised import end_process


@dataclass(frozen=True, slots=True)
class Once:
    argv: Sequence[str]
    backend: str
    confined: bool
    resources: Resources
    timeout: float
    group: Group | None = None
    disk: DiskWatch | None = None
    descriptors: tuple[int, ...] = ()
    """Further descriptors that the command line names; closed here once they are handed over."""
    environment: dict[str, str] | None = None
    directory: str = "/"
    end: Callable[[asyncio.subprocess.Process], None] | None = None
    """Kills what is no namespace; otherwise the namespace's first process is."""


async def run_once(once: Once, on_output: OnOutput | None) -> Result:
    """Raises `SandboxFailed` when it cannot be started. Nothing is left when this returns."""
    out, err = collectors(once.resources.output_kb * 1024, on_output)
    readers = PipeReader(out), PipeReader(err)
    began = time.monotonic()
    prefix = once.group.prefix() if once.group else []
    try:
        process = await asyncio.create_subprocess_exec(
            *prefix,
            *once.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=readers[0].write_end,
            stderr=readers[1].write_end,
            pass_fds=once.descriptors,
            start_new_session=True,
            env=once.environment or {"PATH": "/usr/local/bin:/usr/bin:/bin"},
            cwd=once.directory,
        )
    except (OSError, ValueError) as problem:
        for reader in readers:
            reader.close()
        if once.group:
            await asyncio.to_thread(once.group.remove)
        raise SandboxFailed(f"The sandbox could not be started: {problem}.") from problem
    finally:
        for descriptor in once.descriptors:
            os.close(descriptor)
    for reader in readers:
        reader.started()
    ended = asyncio.ensure_future(process.wait())
    oom = False
    reason: KilledBy | None = None
    try:
        reason = await wait_for_end(
            ended,
            timeout=min(once.timeout, once.resources.wall_seconds),
            interrupted=asyncio.Event(),
            readers=readers,
            disk=once.disk,
            unseen=partial(held_without_a_name, process.pid),
        )
    finally:
        if not ended.done():
            await asyncio.shield(_end(once, process))
        elif once.end is not None:
            once.end(process)
        for reader in readers:
            reader.drain()
            reader.close()
        if once.group is not None:
            oom = once.group.oom_kills() > 0
            await asyncio.to_thread(once.group.remove)
        if once.disk is not None:
            once.disk.look_after()
    code = process.returncode if process.returncode is not None else -9
    if reason is None:
        reason = limit_that_killed(code, oom=oom)
        if reason is None and code < 0:
            reason = KilledBy.SIGNAL
    return Result(
        backend=once.backend,
        confined=once.confined,
        exit_code=code if code >= 0 and reason is not KilledBy.TIMEOUT else None,
        duration=time.monotonic() - began,
        stdout=out.captured(),
        stderr=err.captured(),
        killed_by=reason,
        signal=-code if code < 0 else 0,
    )


async def _end(once: Once, process: asyncio.subprocess.Process) -> None:
    if once.end is not None:
        once.end(process)
    await end_process(process, grace=0)
