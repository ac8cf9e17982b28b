"""A process of its own for work on foreign text that may take for ever or crash the interpreter.

The scripts in `tools_app/isolated/` get no environment, open no files and, unless they are given
`libraries`, use only the standard library: they answer one line of JSON for each line they are given.
Running a model's commands is not done here; that is the sandbox's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import IO, Any, cast

if sys.platform == "linux":
    import resource

MEMORY_LIMIT = 1024**3
"""Bytes of address space of one process."""
REPLY_LIMIT = 8 * 1024**2
"""Bytes of one answer."""

_SCRIPTS = Path(__file__).parent / "isolated"


class IsolationTimedOut(Exception):
    """The time was up and the process is gone."""


class IsolationFailed(Exception):
    """The process died or gave no sensible answer, as when it ran out of memory."""


class IsolatedProcess:
    """A context manager around one process, killed when `seconds` have passed since its start."""

    def __init__(self, script: str, *, seconds: float, libraries: bool = False) -> None:
        self._script = _SCRIPTS / f"{script}.py"
        self._seconds = seconds
        self._flags = ("-I",) if libraries else ("-I", "-S")
        self._expired = False

    def __enter__(self) -> IsolatedProcess:
        self._process = subprocess.Popen(
            [sys.executable, *self._flags, "-W", "ignore", str(self._script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
        )
        # Both are there, because both were asked for.
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._timer = Timer(self._seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()
        self._limit()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.wait()
        self._stdout.close()
        try:
            self._stdin.close()
        except BrokenPipeError:  # it died with a request half read
            pass

    def ask(self, request: Mapping[str, Any]) -> Any:
        """The answer to one request. Raises `IsolationTimedOut` or `IsolationFailed`."""
        try:
            self._stdin.write(json.dumps(request).encode() + b"\n")
            self._stdin.flush()
            reply = self._stdout.readline(REPLY_LIMIT)
        except BrokenPipeError:
            reply = b""
        if not reply.endswith(b"\n"):
            if self._expired:
                raise IsolationTimedOut
            raise IsolationFailed
        try:
            return json.loads(reply)
        except (ValueError, RecursionError):
            raise IsolationFailed from None

    def _expire(self) -> None:
        self._expired = True
        self._process.kill()

    def _limit(self) -> None:
        # The processor limit also ends it when this process was killed and nobody else can.
        if sys.platform == "linux":
            seconds = int(self._seconds) + 2
            try:
                resource.prlimit(self._process.pid, resource.RLIMIT_CPU, (seconds, seconds))
                memory = (MEMORY_LIMIT, MEMORY_LIMIT)
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, memory)
            except (ProcessLookupError, PermissionError):
                pass
