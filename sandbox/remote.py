"""A shell whose commands are started one by one through a client program, as by `docker exec`.

Directory and exported variables are kept in a file of the sandbox's own temporary folder, never read
outside. A command's end is the client's end.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from harness.errors import AgentError

from .busy import OneCommand
from .capture import PipeReader, collectors
from .contract import DEFAULT_TIMEOUT, Command, KilledBy, OnOutput, Result, SandboxFailed
from .diskwatch import DiskWatch
from .ending import limit_that_killed, wait_for_end
from .limits import Limits, as_ulimits
from .policy import Resources

KEPT = '"$HOME/.agentsite-shell"'
SCRIPT = """{limits}
[ -f {kept} ] && . {kept} 2>/dev/null || cd -- {workdir}
__agentsite_keep() {{
  local status=$?
  {{ builtin printf 'cd -- %q\\n' "$PWD"; builtin declare -px; }} > {kept} 2>/dev/null
  return $status
}}
trap __agentsite_keep EXIT
eval {command}
__agentsite_keep
"""


class RemoteShell(OneCommand):
    """See `contract.Shell`. Ends with a command that is killed: its client cannot reach inside."""

    def __init__(
        self,
        *,
        backend: str,
        resources: Resources,
        workdir: str,
        limits: Limits,
        argv: Callable[[str], Sequence[str]],
        environment: Mapping[str, str],
        stop: Callable[[], Awaitable[object]],
        remove: Callable[[], Awaitable[None]],
        disk: DiskWatch | None = None,
    ) -> None:
        self._backend = backend
        self._resources = resources
        self._workdir = workdir
        self._limits = limits
        self._argv = argv
        self._environment = environment
        self._stop = stop
        self._remove = remove
        self._disk = disk
        self._interrupted = asyncio.Event()
        self._watching_left: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def alive(self) -> bool:
        return not self._closed

    async def run(
        self,
        command: Command,
        *,
        timeout: float = DEFAULT_TIMEOUT,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result:
        with self.taken_by(command) as text:
            self._watch_left_no_more()
            return await self._run(text, min(timeout, self._resources.wall_seconds), on_output)

    async def _run(self, text: str, timeout: float, on_output: OnOutput | None) -> Result:  # noqa: ASYNC109
        limit = self._resources.output_kb * 1024

        full = self._disk is not None and await self._disk.is_full()
        limits = {**self._limits, **({"RLIMIT_FSIZE": (0, 0)} if full else {})}
        script = SCRIPT.format(
            limits=as_ulimits(limits),
            kept=KEPT,
            workdir=shlex.quote(self._workdir),
            command=shlex.quote(text),
        )
        out, err = collectors(limit, on_output)
        readers = PipeReader(out), PipeReader(err)
        began = time.monotonic()
        self._interrupted.clear()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv(script),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=readers[0].write_end,
                stderr=readers[1].write_end,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as problem:
            for reader in readers:
                reader.close()
            raise SandboxFailed(f"The command could not be started: {problem}.") from problem
        for reader in readers:
            reader.started()
        ended = asyncio.ensure_future(process.wait())
        reason: KilledBy | None = None
        try:
            reason = await wait_for_end(
                ended,
                timeout=timeout,
                interrupted=self._interrupted,
                readers=readers,
                disk=self._disk,
            )
        finally:
            if not ended.done():
                # The client's end alone would leave the command running inside.
                await asyncio.shield(self._end(process))
            for reader in readers:
                reader.drain()
                reader.close()
            if self._disk is not None:
                self._disk.look_after()
                if self.alive:
                    self._watching_left = self._disk.keep_watch(self.close)
        code = process.returncode if process.returncode is not None else -9
        return Result(
            backend=self._backend,
            confined=True,
            exit_code=code if code >= 0 and reason is None else None,
            duration=time.monotonic() - began,
            stdout=out.captured(),
            stderr=err.captured(),
            killed_by=reason or limit_that_killed(code, oom=code == 137),
            signal=-code if code < 0 else 0,
            left=self.alive,
        )

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        with suppress(AgentError):
            await self._stop()
        await self.close()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    def _watch_left_no_more(self) -> None:
        if self._watching_left is not None:
            self._watching_left.cancel()
            self._watching_left = None

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._watch_left_no_more()
            await self._remove()
