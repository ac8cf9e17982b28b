"""A shell whose commands are started inside the sandbox by `inside/supervisor.py`.

Commands and their pipes go in over a control socket; the end of each comes back from the kernel by
way of the supervisor. What surrounds the supervisor is decided by the backend that starts it.
"""

from __future__ import annotations

import array
import asyncio
import base64
import json
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reading.foreignjson import Unreadable, read_mended_json

from .busy import OneCommand
from .capture import Collector, PipeReader, collectors
from .cgroups import Group
from .contract import DEFAULT_TIMEOUT, KilledBy, OnOutput, Result, SandboxFailed
from .diskwatch import DiskWatch
from .ending import limit_that_killed, wait_for_end
from .heldfiles import held_without_a_name
from .limits import limits_of
from .policy import Resources
from .traffic import Traffic

START_SECONDS = 20.0
KILL_SECONDS = 10.0
"""How long a killed command may take to be gone before the whole sandbox is ended."""


_KILLED: Mapping[str, Any] = {"status": int(signal.SIGKILL), "directory": "", "left": False}
"""The end of a command whose sandbox was ended with it."""


class _Lost(SandboxFailed):
    """The supervisor is gone, and whatever it had started."""


@dataclass(slots=True)
class Start:
    """What a backend says about the supervisor it wants started."""

    argv: Sequence[str]
    """The whole command line; `{control}` stands for the control socket's descriptor."""
    setup: Mapping[str, Any]
    """The supervisor's first message, without `op` and `limits`."""
    backend: str
    confined: bool
    resources: Resources
    each_memory: bool
    group: Group | None = None
    disk: DiskWatch | None = None
    descriptors: tuple[int, ...] = ()
    """Further descriptors that the command line names; closed here once they are handed over."""
    before: Callable[[], None] | None = None
    """Called before each command, in a thread."""
    traffic: Traffic | None = None
    """What the sandbox's way out decides, if it has one."""
    on_start: Callable[[int], None] | None = None
    """Told the number of the sandbox's first process on this host."""
    after: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Called once when the sandbox is gone."""


class SupervisedShell(OneCommand):
    """See `contract.Shell`. Made by `open_supervised`."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._ended: asyncio.Future[dict[str, Any]] | None = None
        self._interrupted = asyncio.Event()
        self._number = 0
        """Of the latest command, so that news of an earlier one is not taken for its own."""
        self._next: tuple[PipeReader, PipeReader] | None = None
        """The pipes of the next command, whose shell waits for it already."""
        self._left: list[PipeReader] = []
        """Pipes that programs in the background still hold."""
        self._watching_left: asyncio.Task[None] | None = None
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return not self._closed and self._control is not None

    # --- start -----------------------------------------------------------------------------------

    async def open(self) -> None:
        start = self._start
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.setblocking(False)
        errors = PipeReader(collector := Collector(8_192))
        try:
            argv = [part.replace("{control}", str(far.fileno())) for part in start.argv]
            prefix = start.group.prefix() if start.group else []
            self._process = await asyncio.create_subprocess_exec(
                *prefix,
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors.write_end,
                pass_fds=(far.fileno(), *start.descriptors),
                start_new_session=True,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                cwd="/",
            )
        except OSError as problem:
            near.close()
            errors.close()
            await self.close()
            raise SandboxFailed(f"The sandbox could not be started: {problem}.") from problem
        finally:
            far.close()
            for descriptor in start.descriptors:
                os.close(descriptor)
        errors.started()
        self._left.append(errors)
        if start.on_start is not None:
            start.on_start(self._process.pid)
        self._control = near
        self._loop.add_reader(near.fileno(), self._hear)
        limits = limits_of(start.resources, each_memory=start.each_memory)
        self._say({"op": "setup", **start.setup, "limits": limits})
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._ready
        except (TimeoutError, SandboxFailed, asyncio.CancelledError) as problem:
            errors.drain()
            said = collector.captured().text.strip()
            await self.close()
            if isinstance(problem, asyncio.CancelledError):
                raise
            raise SandboxFailed(
                f"The sandbox could not be started: {said or 'it did not answer'}."
            ) from problem
        self._prepare_next()

    def _prepare_next(self) -> None:
        """Have the shell of the next command started while nobody waits for it."""
        if not self.alive:
            return
        readers = self._next = PipeReader(), PipeReader()
        try:
            self._say({"op": "next"}, [reader.write_end for reader in readers])
        except SandboxFailed:  # the next command will say so
            return
        for reader in readers:
            reader.started()

    # --- the control socket ----------------------------------------------------------------------

    def _say(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        if self._control is None:
            raise SandboxFailed("The shell has ended.", hint="Run the command again for a new one.")
        ancillary = [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        ] if descriptors else []  # fmt: skip
        try:
            self._control.sendmsg([json.dumps(message).encode()], ancillary)
        except OSError as problem:
            raise SandboxFailed(
                f"The sandbox does not answer: {problem}.", hint="Run the command again."
            ) from problem

    def _hear(self) -> None:
        assert self._control is not None  # noqa: S101 - for the type checker
        try:
            data = self._control.recv(1_000_000)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        message = _message_of(data)
        if message is None:
            self._lost()
        elif message["event"] == "ready" and not self._ready.done():
            self._ready.set_result(message)
        elif message.get("number") == self._number and self._ended and not self._ended.done():
            if message["event"] == "ended":
                self._ended.set_result(message)
            elif message["event"] == "failed":
                self._ended.set_exception(
                    SandboxFailed(f"The command could not be started: {message['problem']}.")
                )

    def _lost(self) -> None:
        """The supervisor is gone."""
        if self._control is not None:
            self._loop.remove_reader(self._control.fileno())
            self._control.close()
            self._control = None
        problem = _Lost(
            "The shell ended while it was used.",
            hint="It may have run out of memory. The next command starts a new shell.",
        )
        for waiting in (self._ready, self._ended):
            if waiting is not None and not waiting.done():
                waiting.set_exception(problem)
                waiting.exception()

    # --- commands --------------------------------------------------------------------------------

    async def run(
        self,
        command: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result:
        with self.taken_by(command) as text:
            self._watch_left_no_more()
            try:
                return await self._run(
                    text, min(timeout, self._start.resources.wall_seconds), on_output
                )
            finally:
                self._ended = None
                self._prepare_next()

    async def _run(self, command: str, timeout: float, on_output: OnOutput | None) -> Result:  # noqa: ASYNC109
        start = self._start
        began = time.monotonic()
        full = start.disk is not None and await start.disk.is_full()
        if start.before is not None:
            await asyncio.to_thread(start.before)
        if self._next is None:
            raise SandboxFailed("The shell has ended.", hint="Run the command again for a new one.")
        readers, self._next = self._next, None
        out, err = collectors(start.resources.output_kb * 1024, on_output)
        readers[0].collect(out)
        readers[1].collect(err)
        oom = start.group.oom_kills() if start.group else 0
        self._interrupted.clear()
        self._ended = ended = self._loop.create_future()
        self._number += 1
        text = base64.b64encode(command.encode()).decode()
        message: dict[str, Any] = {"op": "run", "number": self._number, "command": text}
        if full:
            message["limits"] = limits_of(start.resources, each_memory=start.each_memory, full=True)
        try:
            self._say(message)
            reason = await wait_for_end(
                ended,
                timeout=timeout,
                interrupted=self._interrupted,
                readers=readers,
                disk=start.disk,
                unseen=self.held,
            )
            report: Mapping[str, Any] = (
                ended.result() if reason is None else await self._kill(ended)
            )
        except _Lost:
            # It had begun: what it printed by then is told. Who may still run, nobody is left to say.
            reason, report = KilledBy.CLOSED, {**_KILLED, "left": True}
        except BaseException:
            # Cancelled, or a listener raised: what runs must not go on.
            if not ended.done():
                await asyncio.shield(self._kill(ended))
            for reader in readers:
                reader.close()
            if ended.done():
                ended.exception()
            raise
        for reader in readers:
            reader.drain()
            if not reader.ended:
                reader.detach()
                self._left.append(reader)
        self._left = [reader for reader in self._left if not reader.ended]
        if start.disk is not None:
            start.disk.look_after()
            if report["left"] and self.alive:
                self._watching_left = start.disk.keep_watch(self.close, self.held)
        code = os.waitstatus_to_exitcode(report["status"])
        killed = start.group.oom_kills() > oom if start.group else False
        if reason is KilledBy.CLOSED and killed:
            reason = KilledBy.MEMORY
        elif reason is None:
            reason = limit_that_killed(code, oom=killed)
            if reason is None and code < 0:
                reason = KilledBy.SIGNAL
        return Result(
            backend=start.backend,
            confined=start.confined,
            exit_code=code if code >= 0 else None,
            duration=time.monotonic() - began,
            stdout=out.captured(),
            stderr=err.captured(),
            killed_by=reason,
            signal=-code if code < 0 else 0,
            workdir=report["directory"],
            network=start.traffic.take() if start.traffic is not None else None,
            left=report["left"],
        )

    async def begin_program(
        self, argv: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]
    ) -> asyncio.Future[dict[str, Any]]:
        """Start a program in place of commands, for as long as the shell lasts; what is answered is done
        when it has ended. `descriptors` are its input, output and errors, as it has them.

        Raises `SandboxFailed`; where it cannot be started, what is answered does.
        """
        start = self._start
        full = start.disk is not None and await start.disk.is_full()
        if start.before is not None:
            await asyncio.to_thread(start.before)
        self._command = argv[0]
        self._ended = ended = self._loop.create_future()
        self._number += 1
        message = {
            "op": "program",
            "number": self._number,
            "argv": list(argv),
            "env": dict(environment),
            "limits": limits_of(start.resources, each_memory=start.each_memory, full=full),
        }
        self._say(message, descriptors)
        return ended

    @property
    def disk(self) -> DiskWatch | None:
        return self._start.disk

    def out_of_memory(self) -> bool:
        """Whether the sandbox's memory was ever used up."""
        return self._start.group is not None and self._start.group.oom_kills() > 0

    async def _kill(self, ended: asyncio.Future[dict[str, Any]]) -> Mapping[str, Any]:
        """End the command with everything in the sandbox; the sandbox too, if that does not help."""
        with suppress(SandboxFailed):
            self._say({"op": "kill"})
        await asyncio.wait([ended], timeout=KILL_SECONDS)
        if not ended.done():
            await self.close()
        if not ended.done() or ended.exception() is not None:
            return _KILLED
        return ended.result()

    def held(self, folders: Sequence[Path]) -> int:
        """Bytes beside these folders without a name in them, of what runs in the sandbox."""
        process = self._process
        return 0 if process is None else held_without_a_name(process.pid, folders)

    # --- end -------------------------------------------------------------------------------------

    def _watch_left_no_more(self) -> None:
        if self._watching_left is not None:
            self._watching_left.cancel()
            self._watching_left = None

    async def close(self) -> None:
        if self._closing is None:
            self._closed = True
            self._watch_left_no_more()
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._control is not None:
            # Its end tells the supervisor to kill everything and go.
            with suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
            self._lost()
        if self._process is not None:
            await end_process(self._process)
        for reader in (*self._left, *(self._next or ())):
            reader.close()
        self._next = None
        if self._start.group is not None:
            await asyncio.to_thread(self._start.group.remove)
        for after in self._start.after:
            await after()


async def end_process(process: asyncio.subprocess.Process, *, grace: float = 2.0) -> None:
    """Wait until a sandbox's first process is gone, and with it all the others.

    Of a namespace its first child is killed, because its parent goes only when everything is over.
    """
    waiting = asyncio.ensure_future(process.wait())
    done, _pending = await asyncio.wait([waiting], timeout=grace)
    for victims in (children_of(process.pid), [process.pid]):
        if done:
            break
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        done, _pending = await asyncio.wait([waiting], timeout=KILL_SECONDS)


def _message_of(data: bytes) -> dict[str, Any] | None:
    """What the supervisor says; none for what it never does, as when something in there took it over."""
    try:
        message: Any = read_mended_json(data)
    except Unreadable:
        return None
    match message:
        case {"event": "ready"} | {"event": "failed", "number": int(), "problem": str()}:
            known = True
        case {"event": "ended", "number": int(), "directory": str(), "left": bool()}:
            known = _is_an_end(message.get("status"))
        case _:
            known = False
    return message if known else None


def _is_an_end(status: object) -> bool:
    if not isinstance(status, int) or not 0 <= status < 1 << 16:
        return False
    return os.WIFEXITED(status) or os.WIFSIGNALED(status)


def children_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(child) for child in text.split()]
    except OSError:
        return []


async def open_supervised(start: Start) -> SupervisedShell:
    """Raises `SandboxFailed` with what the sandbox said when it does not come up."""
    shell = SupervisedShell(start)
    await shell.open()
    return shell


def encoded(program: bytes) -> str:
    return base64.b64encode(program).decode()
