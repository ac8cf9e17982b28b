"""One command at a time: what every shell demands before a command may have it.

How a command runs is each shell's.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from .contract import Command, SandboxFailed, ShellBusy
from .refusals import refuse_rule

COMMAND_LIMIT = 65_536
"""Bytes of a command; the kernel takes one argument of twice that size."""
SHOWN = 200
"""Characters of the command that is at work, in the refusal of another."""


def checked(command: Command) -> None:
    """Raises the refusal for what cannot be handed to any program."""
    parts = [command] if isinstance(command, str) else list(command)
    if not parts or not parts[0].strip():
        raise refuse_rule("it is empty", "a command has a text", remedy="Say what to run.")
    try:
        size = sum(len(part.encode()) for part in parts)
    except UnicodeEncodeError as problem:
        raise refuse_rule(
            "it holds characters that are no valid text",
            "a command is Unicode text",
            remedy="Write such bytes with printf and escapes.",
        ) from problem
    if any("\0" in part for part in parts):
        raise refuse_rule(
            "it holds a NUL character",
            "the operating system ends a text there",
            remedy=r"Write it as printf '\0' inside the command.",
        )
    if size > COMMAND_LIMIT:
        raise refuse_rule(
            f"it is {size:,} bytes long",
            f"a command has at most {COMMAND_LIMIT:,} bytes",
            remedy="Write the text to a file with write_file first and run that.",
        )


class OneCommand:
    """The part of `contract.Shell` that says whether it is free."""

    _command: str | None = None
    _interrupted: asyncio.Event

    def interrupt(self) -> bool:
        """See `contract.Shell`: the command under way is to end."""
        if self._command is None:
            return False
        self._interrupted.set()
        return True

    @property
    def busy(self) -> str | None:
        return self._command

    @property
    def alive(self) -> bool:
        raise NotImplementedError

    @contextmanager
    def taken_by(self, command: Command) -> Iterator[str]:
        """The shell is busy with the command, whose text is given. Raises the refusal for what no
        program can be handed, ShellBusy, and SandboxFailed for a shell that has ended."""
        checked(command)
        if self._command is not None:
            raise ShellBusy(
                f"The shell still runs: {self._command[:SHOWN]}",
                hint="Wait for it, or interrupt it.",
            )
        if not self.alive:
            raise SandboxFailed("The shell has ended.", hint="Run the command again for a new one.")
        self._command = command if isinstance(command, str) else f"exec {shlex.join(command)}"
        try:
            yield self._command
        finally:
            self._command = None
