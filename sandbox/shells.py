"""The shells that conversations have open in this process, each by its conversation's key.

A shell is opened when it is first needed, closed when it was idle for long, when its rules change and
when its conversation ends. What a shell is belongs to the backends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass

from harness.errors import AgentError

from .contract import Shell, Unavailable

IDLE_SECONDS = 900.0
MOST_SHELLS = 200
"""Open at once in this process; the one that was idle longest makes room."""

Open = Callable[[], Awaitable[Shell]]


@dataclass(slots=True)
class Held:
    shell: Shell
    rules: Hashable
    """What the shell was opened under; another value closes it."""
    used: float


class ShellRegistry:
    """Belongs to one event loop."""

    def __init__(self, *, idle: float = IDLE_SECONDS, most: int = MOST_SHELLS) -> None:
        self._idle = idle
        self._most = most
        self._held: dict[str, Held] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def find(self, key: str) -> Shell | None:
        held = self._held.get(key)
        return held.shell if held is not None and held.shell.alive else None

    async def get(self, key: str, rules: Hashable, open_shell: Open) -> tuple[Shell, bool]:
        """The shell of `key`, and whether it is new. Raises what opening raises, and `Unavailable`
        when every shell is busy and there is no room for another."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            held = self._held.get(key)
            if held is not None and held.shell.alive and (held.rules == rules or held.shell.busy):
                held.used = time.monotonic()
                return held.shell, False
            if held is not None:
                await self._drop(key)
            await self._make_room()
            shell = await open_shell()
            self._held[key] = Held(shell, rules, time.monotonic())
            if self._sweeper is None or self._sweeper.done():
                self._sweeper = asyncio.create_task(self._sweep())
            return shell, True

    def touch(self, key: str) -> None:
        """The shell was used until now."""
        if key in self._held:
            self._held[key].used = time.monotonic()

    async def close(self, key: str) -> None:
        """End the shell of a conversation, if it has one, with everything it still runs."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            await self._drop(key)
        self._locks.pop(key, None)

    async def close_all(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.gather(*(self.close(key) for key in tuple(self._held)))

    def open_keys(self) -> tuple[str, ...]:
        return tuple(self._held)

    def interrupt(self, key: str) -> bool:
        """Kill what the shell of `key` runs; False if it runs nothing."""
        shell = self.find(key)
        return shell is not None and shell.interrupt()

    async def _drop(self, key: str) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            with suppress(AgentError, OSError):
                await held.shell.close()

    async def _make_room(self) -> None:
        if len(self._held) < self._most:
            return
        idle = [(held.used, key) for key, held in self._held.items() if held.shell.busy is None]
        if not idle:
            raise Unavailable(
                f"The command was not run: {self._most} shells are busy on this server.",
                hint="Try again in a moment.",
            )
        await self._drop(min(idle)[1])

    async def _sweep(self) -> None:
        while self._held:
            await asyncio.sleep(self._idle / 4)
            before = time.monotonic() - self._idle
            for key, held in tuple(self._held.items()):
                if held.shell.busy is None and (held.used < before or not held.shell.alive):
                    await self.close(key)
