"""The process in which Strands' loop runs (`program`): one for each of ours, begun when it is first needed.

It lives in an environment of its own, without this process's variables, is told no words of anybody, and
keeps nothing between two questions. Its lines are bounded, as is the time that each may take. With this
process it ends, since its input does, however this one dies and whomever it had forked; and by itself when
nothing is asked.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings

from reading.foreignjson import Unreadable, read_json

PROGRAM = Path(__file__).with_name("program.py")
START_SECONDS = 60.0
"""To import Strands takes a second or two of a processor, and several may begin at once."""
ANSWER_SECONDS = 20.0
"""For all of one question."""
LINE_LIMIT = 60_000
"""Bytes: names and references take a few hundred. What a pipe holds is written without waiting."""
MOST_LINES = 2_000
"""Of one question: no run has so many turns and calls."""
_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "OTEL_SDK_DISABLED": "true",
    "AWS_EC2_METADATA_DISABLED": "true",
}

Answer = Callable[[dict[str, Any]], dict[str, Any]]
"""To what Strands asks for."""


class Broken(Exception):
    """It died, was too slow, or said what nobody expects."""


class NotReady(Broken):
    """It did not start, had ended, or took too long; later it may not."""


def interpreter() -> Path:
    """Of the environment that `make strands` makes."""
    return Path(settings.BASE_DIR, settings.AGENTSITE_STRANDS_DIR, "bin", "python")


def orchestrated(specialists: list[str], answer: Answer) -> dict[str, Any]:
    """What Strands' loop came to when it went through everything from its beginning: the line that ends it.
    Raises Broken, and another process begins with the next question."""
    lock = _lock
    if not lock.acquire(timeout=ANSWER_SECONDS):
        raise NotReady("it is asked for others")
    try:
        return _ready().through({"specialists": specialists}, answer)
    except BaseException:
        _end()  # it may be in the middle of it
        raise
    finally:
        lock.release()


class _Loop:
    def __init__(self) -> None:
        self.of = os.getpid()
        try:
            self._process = subprocess.Popen(
                [str(interpreter()), "-I", str(PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_VARIABLES,
                cwd="/",
                start_new_session=True,
            )
        except OSError as problem:
            raise NotReady(f"it does not start: {problem}") from problem
        _begun.append(self._process)
        self._read = b""
        self._until = time.monotonic() + START_SECONDS
        try:
            if "ready" not in self._hear():
                raise Broken("it is not the program that was expected")
        except BaseException as problem:
            self.close()
            if isinstance(problem, Broken):
                raise NotReady(
                    f"Strands does not start, {problem}: see `make strands`"
                ) from problem
            raise

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def through(self, told: dict[str, Any], answer: Answer) -> dict[str, Any]:
        self._until = time.monotonic() + ANSWER_SECONDS
        self._say(told)
        for _line in range(MOST_LINES):
            heard = self._hear()
            if "fault" in heard:
                raise Broken(str(heard["fault"])[:500])
            if "model" not in heard and "tool" not in heard:
                return heard
            self._say(answer(heard))
        raise Broken("it asks without end")

    def close(self) -> None:
        """Not of a process that another one of ours began: its ends of the pipes are closed alone."""
        with suppress(ValueError):
            _begun.remove(self._process)
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self.of == os.getpid():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _say(self, value: dict[str, Any]) -> None:
        line = json.dumps(value).encode() + b"\n"
        if len(line) > LINE_LIMIT or self._process.stdin is None:
            raise Broken("more would be said to it than it takes")
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError as problem:
            raise NotReady("it has ended") from problem

    def _hear(self) -> dict[str, Any]:
        """Its next line."""
        out = self._process.stdout
        if out is None:
            raise NotReady("it has ended")
        # One line is the answer to one of ours: behind it there is nothing until we say more.
        parts, size = [self._read], len(self._read)
        with selectors.DefaultSelector() as ready:
            ready.register(out, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                left = self._until - time.monotonic()
                if left <= 0 or not ready.select(left):
                    raise NotReady("it takes too long")
                parts.append(os.read(out.fileno(), 65_536))
                size += len(parts[-1])
                if not parts[-1]:
                    raise NotReady("it has ended")
                if size > LINE_LIMIT:
                    raise Broken("it says more in one line than is read")
        line, _end, self._read = b"".join(parts).partition(b"\n")
        try:
            heard = read_json(line, limit=LINE_LIMIT)
        except Unreadable as problem:
            raise Broken(f"what it says is no JSON: {problem}") from problem
        if not isinstance(heard, dict):
            raise Broken("what it says is no object")
        return heard


_lock = threading.Lock()
_loops: list[_Loop] = []
_begun: list[subprocess.Popen[bytes]] = []
"""All of this process's, also while they start: whoever is forked meanwhile has their pipes as well."""


def _ready() -> _Loop:
    if _loops and (_loops[0].of != os.getpid() or not _loops[0].lives):
        _end()
    if not _loops:
        _loops.append(_Loop())
    return _loops[0]


def _end() -> None:
    while _loops:
        _loops.pop().close()


def end() -> None:
    """Have none run."""
    with _lock:
        _end()


def _forked() -> None:
    """Another thread of the process that this one came from may have held it; and an input that this one
    keeps open would not end with that one."""
    global _lock
    _lock = threading.Lock()
    nothing = os.open(os.devnull, os.O_RDWR)
    for process in _begun:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                os.dup2(nothing, pipe.fileno(), inheritable=False)
    os.close(nothing)
    _begun.clear()


atexit.register(_end)
os.register_at_fork(after_in_child=_forked)
