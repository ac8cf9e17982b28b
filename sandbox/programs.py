"""Programs that are spoken to while they run, each in a sandbox of its own, started by its supervisor.

What is read of one and what is written to it goes through pipes that are not read ahead, so that a program
which says without end, or hears nothing, holds up itself alone. What is said is nobody's concern here.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from harness.errors import AgentError

from .backend import ShellBackend
from .busy import checked
from .capture import PIECE, Collector, PipeReader
from .contract import KilledBy, Mounts, Program, SandboxFailed, Unavailable
from .diskwatch import DiskWatch
from .ending import limit_that_killed
from .policy import Policy
from .supervised import SupervisedShell

MOST_PROGRAMS = 100
"""Open at once in this process."""
MOST_OF_ONE = 20
"""Of them for one conversation: the others are for everybody else."""
KEPT_ERRORS = 8_192
"""Bytes of what a program writes into its errors."""
MOST_ERRORS = 16 * 1024 * 1024
"""Bytes that it may write there in all: each is read."""
DISK_SECONDS = 2.0
"""Between two looks at what its folders hold. It lives long, and mostly waits."""

Open = Callable[[], Awaitable[Program]]


class ProgramBackend(ShellBackend[SupervisedShell]):
    """A backend whose sandboxes have a supervisor."""

    async def open_program(
        self,
        argv: Sequence[str],
        policy: Policy,
        mounts: Mounts,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Program:
        checked(argv)
        await self._require(policy)
        shell = await self._open(policy, mounts)
        program = SupervisedProgram(shell)
        try:
            await program.open(argv, environment or {})
        except BaseException:
            await program.close()
            raise
        return program


class SupervisedProgram:
    """See `contract.Program`. `shell` is its own, and runs nothing else."""

    def __init__(self, shell: SupervisedShell) -> None:
        self._shell = shell
        self._loop = asyncio.get_running_loop()
        self._output = self._input = -1
        self._errors = PipeReader(collector := _Errors(KEPT_ERRORS))
        self._said = collector
        self._writing = asyncio.Lock()
        self._waiting: set[asyncio.Future[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._ending = ""

    async def open(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        given, self._input = os.pipe2(os.O_CLOEXEC)
        self._output, shown = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(self._input, False)
            os.set_blocking(self._output, False)
            descriptors = (given, shown, self._errors.write_end)
            ended = await self._shell.begin_program(argv, environment, descriptors)
        finally:
            os.close(given)
            os.close(shown)
            self._errors.started()
        self._watching = asyncio.create_task(self._watch(ended, self._shell.disk))

    @property
    def alive(self) -> bool:
        return not self._ending

    @property
    def ending(self) -> str:
        return self._ending

    async def read(self) -> bytes:
        while self._output >= 0:
            try:
                data = os.read(self._output, PIECE)
            except BlockingIOError:
                await self._ready(self._output, self._loop.add_reader, self._loop.remove_reader)
                continue
            if not data:
                await self._known_end()
            return data
        return b""

    async def write(self, data: bytes) -> None:
        async with self._writing:
            left = memoryview(data)
            while left:
                if self._input < 0:
                    raise SandboxFailed(self._ending or "The program has ended.")
                try:
                    left = left[os.write(self._input, left) :]
                except BlockingIOError:
                    await self._ready(self._input, self._loop.add_writer, self._loop.remove_writer)
                except OSError as problem:
                    await self._known_end()
                    raise SandboxFailed(self._ending or "It does not listen.") from problem

    def last_errors(self) -> str:
        return self._said.captured().text

    async def close(self) -> None:
        self._ending = self._ending or "It was closed."
        if self._watching is not None and self._watching is not asyncio.current_task():
            self._watching.cancel()
        await self._shell.close()
        self._errors.drain()
        self._errors.close()
        for name, remove in (
            ("_output", self._loop.remove_reader),
            ("_input", self._loop.remove_writer),
        ):
            descriptor: int = getattr(self, name)
            setattr(self, name, -1)
            if descriptor >= 0:
                remove(descriptor)
                os.close(descriptor)
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def _ready(
        self,
        descriptor: int,
        add: Callable[..., object],
        remove: Callable[[int], object],
    ) -> None:
        """Until something can be read or written there, or it is closed."""
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(waiting)
        add(descriptor, _wake, waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)
            if descriptor in {self._output, self._input}:
                remove(descriptor)

    async def _known_end(self) -> None:
        """Its pipes are at their end; how it ended comes by another way, mostly at once."""
        if self._watching is not None:
            await asyncio.wait([self._watching], timeout=1.0)

    async def _watch(self, ended: asyncio.Future[dict[str, Any]], disk: DiskWatch | None) -> None:
        """Until it has ended or must; then everything that it started ends as well."""
        flood = asyncio.ensure_future(self._errors.broken())
        demands: list[asyncio.Future[Any]] = [flood]
        if disk is not None:
            looks = disk.overfilled(period=DISK_SECONDS, unseen=self._shell.held)
            demands.append(asyncio.ensure_future(looks))
        try:
            await asyncio.wait([ended, *demands], return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                self._ending = self._how(ended)
            elif flood.done():
                self._ending = "It was ended, because it wrote errors without end."
            else:
                self._ending = f"It was ended: {_WORDS[KilledBy.DISK]}."
        finally:
            for demand in demands:
                demand.cancel()
            if flood.done() and not flood.cancelled():
                flood.exception()
        # What it had said before can still be read.
        await self._shell.close()

    def _how(self, ended: asyncio.Future[dict[str, Any]]) -> str:
        problem = ended.exception()
        if isinstance(problem, AgentError):
            return problem.message
        if problem is not None:
            return "The sandbox ended."
        code = os.waitstatus_to_exitcode(ended.result()["status"])
        reason = limit_that_killed(code, oom=self._shell.out_of_memory())
        if reason is not None:
            return f"It ended: {_WORDS[reason]}."
        if code < 0:
            with suppress(ValueError):
                return f"It ended by the signal {signal.Signals(-code).name}."
        return f"It ended with exit code {code}."


class ProgramRegistry:
    """The programs that conversations have open in this process. Belongs to one event loop."""

    def __init__(self, *, most: int = MOST_PROGRAMS, most_of_one: int = MOST_OF_ONE) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._open: dict[str, set[Program]] = {}
        self._opening: Counter[str] = Counter()

    async def open(self, key: str, start: Open) -> Program:
        """A new one of `key`. Raises what opening raises, and `Unavailable` where there are too many."""
        self._forget_ended()
        if len(self._open.get(key, ())) + self._opening[key] >= self._most_of_one:
            raise Unavailable(
                f"The program was not started: {self._most_of_one} run for this conversation already.",
                hint="Try again in some minutes.",
            )
        if sum(map(len, self._open.values())) + self._opening.total() >= self._most:
            raise Unavailable(
                f"The program was not started: {self._most} run on this server already.",
                hint="Try again in some minutes.",
            )
        self._opening[key] += 1
        try:
            program = await start()
        finally:
            self._opening[key] -= 1
            if not self._opening[key]:
                del self._opening[key]
        self._open.setdefault(key, set()).add(program)
        return program

    def open_keys(self) -> tuple[str, ...]:
        self._forget_ended()
        return tuple(self._open)

    async def close(self, key: str) -> None:
        """End those of a conversation, with everything they started."""
        programs = self._open.pop(key, set())
        await asyncio.gather(*(program.close() for program in programs))

    async def close_all(self) -> None:
        await asyncio.gather(*(self.close(key) for key in tuple(self._open)))

    def _forget_ended(self) -> None:
        alive = {
            key: {program for program in programs if program.alive}
            for key, programs in self._open.items()
        }
        self._open = {key: programs for key, programs in alive.items() if programs}


class _Errors(Collector):
    def add(self, data: bytes) -> None:
        super().add(data)
        if self.size > MOST_ERRORS:
            raise SandboxFailed("It wrote errors without end.")


_WORDS = {
    KilledBy.MEMORY: "the sandbox's memory was used up",
    KilledBy.CPU: "its processor time was used up",
    KilledBy.FILE_SIZE: "a file reached the size limit, or the workspace is full",
    KilledBy.DISK: "the workspace grew over its limit",
}


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
