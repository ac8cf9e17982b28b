"""The contract of a sandbox backend: what it is asked and what it answers.

Which backend is used is decided by `sandbox.choice`; what may be done inside by
`sandbox.policy`. Every coroutine here belongs to the event loop that first used it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from harness.errors import Conflict, ToolError
from harness.events import NetworkRecord

from .guarantees import Guarantee
from .policy import Policy

Command = str | Sequence[str]
"""Text for a shell, or a program with its arguments."""
Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]
"""Called on the loop with each piece as it arrives, until the output limit is reached. Must not
block; what it raises ends the command."""

DEFAULT_TIMEOUT = 120.0


class KilledBy(StrEnum):
    """Why a command did not come to its own end."""

    TIMEOUT = "timeout"
    INTERRUPT = "interrupt"
    MEMORY = "memory"
    CPU = "cpu"
    FILE_SIZE = "file_size"
    DISK = "disk"
    OUTPUT = "output"
    CLOSED = "closed"
    SIGNAL = "signal"


class Unavailable(ToolError):
    """The sandbox refuses, because it cannot promise what the policy requires. Nothing ran."""

    code = "sandbox_refused"


class SandboxFailed(ToolError):
    """The sandbox itself broke, before or while the command ran."""

    code = "sandbox_failed"


class ShellBusy(Conflict):
    """The shell still runs an earlier command."""

    code = "shell_busy"


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder (or file) of the host, and where the sandbox shows it."""

    source: Path
    target: Path
    writable: bool = False
    label: str = ""
    """What it is for, in words."""


@dataclass(frozen=True, slots=True)
class Mounts:
    """What one sandbox shows besides the policy's own folders."""

    workdir: Mount
    """Where commands begin. Writable only if the policy includes it."""
    others: tuple[Mount, ...] = ()

    def all(self) -> tuple[Mount, ...]:
        return (self.workdir, *self.others)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a probe found. `reasons` says, for what is missing, why."""

    backend: str
    available: bool
    guarantees: frozenset[Guarantee] = frozenset()
    reasons: Mapping[Guarantee, str] = field(default_factory=dict)
    problem: str = ""
    """Why the backend cannot be used at all, if it is not available."""
    remedy: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    """Versions and findings, for operators."""


@dataclass(frozen=True, slots=True)
class Captured:
    """One stream of a command, bounded while it was read: its beginning and its end."""

    head: bytes
    tail: bytes
    size: int
    """Bytes that were written, kept or not."""

    @property
    def left_out(self) -> int:
        return self.size - len(self.head) - len(self.tail)

    @property
    def truncated(self) -> bool:
        return self.left_out > 0

    @property
    def text(self) -> str:
        """What was kept, with a mark where something is missing."""
        if not self.truncated:
            return (self.head + self.tail).decode(errors="replace")
        head, tail = (part.decode(errors="replace") for part in (self.head, self.tail))
        return f"{head}\n[… {self.left_out:,} bytes left out …]\n{tail}"


NOTHING = Captured(b"", b"", 0)


@dataclass(frozen=True, slots=True)
class Result:
    backend: str
    confined: bool
    """False: nothing held the command back (the backend “none”)."""
    exit_code: int | None
    """None when the command was killed."""
    duration: float
    """Seconds."""
    stdout: Captured
    stderr: Captured
    killed_by: KilledBy | None = None
    signal: int = 0
    """The signal that ended it, if `killed_by` says SIGNAL."""
    workdir: str = ""
    """Where a shell stands after the command; empty for a single run."""
    network: NetworkRecord | None = None
    """What it asked its way out for; None: it had none, or nobody can tell."""
    left: bool = False
    """Programs that it, or an earlier command of the shell, had started still ran when it ended, or
    nobody can tell. What they do later is no part of this result."""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and self.killed_by is None


class Shell(Protocol):
    """A place where commands follow each other: directory and exported variables stay.

    Programs left in the background live until the shell is closed, unless a command is killed:
    then all of them are.
    """

    @property
    def busy(self) -> str | None:
        """The command that runs now."""

    @property
    def alive(self) -> bool: ...

    async def run(
        self,
        command: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result:
        """Raises `ShellBusy` while another command runs, `SandboxFailed` when the shell is gone.

        A command that is late or interrupted is killed with everything it started; the shell, its
        directory and its variables stay. Cancelling does the same.
        """

    def interrupt(self) -> bool:
        """Kill the running command; its `run` returns. False if there is none."""

    async def close(self) -> None:
        """End the shell and everything in it. May be called again."""


class Program(Protocol):
    """A program in a sandbox of its own, spoken to over its input and output while it runs.

    What it says is strangers' text: whoever reads it bounds it. Nothing is taken from it before it is
    read, so one that says more than anybody wants waits.
    """

    @property
    def alive(self) -> bool: ...

    @property
    def ending(self) -> str:
        """How it ended, in words; empty: it has not."""

    async def read(self) -> bytes:
        """The next piece of its output, as soon as there is one; empty: there will be none."""

    async def write(self, data: bytes) -> None:
        """Waits while it does not read. Raises `SandboxFailed` where it has ended."""

    def last_errors(self) -> str:
        """The beginning and the end of what it wrote into its errors."""

    async def close(self) -> None:
        """End it with everything it started, and the sandbox. May be called again."""


class SandboxBackend(Protocol):
    name: str

    async def probe(self) -> Capabilities:
        """What this backend can promise here, found by trying; the finding is kept. Never raises."""

    async def look_again(self) -> Capabilities:
        """The same, tried anew where nothing was to be had: a service may have been started since."""

    async def run(
        self,
        command: Command,
        policy: Policy,
        mounts: Mounts,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result:
        """One command in a sandbox of its own, which is gone when this returns or is cancelled.

        `timeout` only shortens the policy's wall clock. Raises `Unavailable` for what cannot be
        promised and `SandboxFailed`; what the command does is in the result.
        """

    async def open_shell(self, policy: Policy, mounts: Mounts) -> Shell:
        """Raises as `run` does."""

    async def open_program(
        self,
        argv: Sequence[str],
        policy: Policy,
        mounts: Mounts,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Program:
        """A program in a sandbox of its own, which is gone with it. `environment`: what it finds beside the
        sandbox's own values. It begins in the sandbox's home folder and finds the workspace by `WORKSPACE`:
        nothing that lies in there is taken for a part of it. The wall clock of the policy is that of
        commands; this one lives until it is closed.

        Raises `Unavailable` for what cannot be promised, and where the backend has no programs that are
        spoken to; and `SandboxFailed`.
        """

    async def close(self) -> None:
        """End everything this backend still runs."""
