"""Isolated processes that stay: for work on foreign text that is done so often that a new process for each
would cost more than the work. How one is confined is `tools_app.isolation`'s.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any

from tools_app.isolation import IsolatedProcess, IsolationFailed

logger = logging.getLogger(__name__)

WAITING = 3
"""Threads that wait for one person's turn; a further one is turned away, so that it serves others."""


@dataclass(slots=True)
class _Line:
    """Of one person's requests: one is at work."""

    turn: Lock = field(default_factory=Lock)
    inside: int = 0


class WarmProcesses:
    """At most `most` processes of one script, started when they are needed; for any number of threads.

    One that is late or dies is gone, and the next request gets another. They end with this process.
    Nobody has more than one of them at a time, so that one person's texts leave the others to others.
    """

    def __init__(
        self, script: str | Path, *, most: int, seconds: float, libraries: bool = False
    ) -> None:
        """`seconds` of the clock are granted to a request, and as many to waiting for its turn."""
        self._script = script
        self._seconds = seconds
        self._libraries = libraries
        self._turns = BoundedSemaphore(most)
        self._lock = Lock()
        self._idle: list[IsolatedProcess] = []
        self._lines: dict[Hashable, _Line] = {}
        self._owner = os.getpid()

    def ask(self, request: Mapping[str, Any], *, who: Hashable = None) -> Any:
        """The answer. Raises `IsolationTimedOut` where this request took too long, `IsolationFailed`
        where its process died or none was to be had, also because `who` has as many requests here as
        anybody may (None is nobody in particular). Blocks; never call it on an event loop."""
        until = time.monotonic() + self._seconds
        with self._turn_of(who, until):
            return self._asked(request, until)

    def _asked(self, request: Mapping[str, Any], until: float) -> Any:
        if not self._turns.acquire(timeout=_left(until)):
            raise IsolationFailed
        try:
            process = self._taken()
            try:
                reply = process.ask(request, seconds=self._seconds)
            except BaseException as problem:
                process.__exit__(None, None, None)
                if isinstance(problem, IsolationFailed):
                    logger.warning("A process of %s died at a request of it.", self._script)
                raise
            with self._lock:
                self._idle.append(process)
            return reply
        finally:
            self._turns.release()

    @contextmanager
    def _turn_of(self, who: Hashable, until: float) -> Iterator[None]:
        if who is None:
            yield
            return
        with self._lock:
            line = self._lines.setdefault(who, _Line())
            if line.inside > WAITING:
                raise IsolationFailed
            line.inside += 1
        try:
            if not line.turn.acquire(timeout=_left(until)):
                raise IsolationFailed
            try:
                yield
            finally:
                line.turn.release()
        finally:
            with self._lock:
                line.inside -= 1
                if not line.inside:
                    del self._lines[who]

    def close(self) -> None:
        """End those that are idle; a later request starts new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.__exit__(None, None, None)

    def _taken(self) -> IsolatedProcess:
        with self._lock:
            if self._owner != os.getpid():  # a fork: these belong to the parent
                self._owner, self._idle = os.getpid(), []
            while self._idle:
                process = self._idle.pop()
                if process.alive:
                    return process
                process.__exit__(None, None, None)
        try:
            return IsolatedProcess(
                self._script, seconds=None, libraries=self._libraries
            ).__enter__()
        except OSError:
            raise IsolationFailed from None


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
