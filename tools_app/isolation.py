"""A process of its own for work on foreign text that may take for ever or crash the interpreter.

The scripts in `tools_app/isolated/` get no environment, open no files and, unless they are given
`libraries`, use only the standard library: they answer one line of JSON for each line they are given.
Running a model's commands is not done here; that is the sandbox's.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import IO, Any, cast

from reading.foreignjson import Unreadable, read_mended_json

if sys.platform == "linux":
    import resource

MEMORY_LIMIT = 1024**3
"""Bytes of address space of one process."""
REPLY_LIMIT = 16 * 1024**2
"""Bytes of one answer: a million characters, each escaped."""
FIRST_TO_GO = "1000"
"""Where a machine has no memory left, Linux ends these processes before any other."""

_OUT_OF_TIME = {-number for name in ("SIGPROF", "SIGXCPU") if (number := getattr(signal, name, 0))}

_SCRIPTS = Path(__file__).parent / "isolated"


class IsolationTimedOut(Exception):
    """The time was up and the process is gone."""


class IsolationFailed(Exception):
    """The process died or gave no sensible answer, as when it ran out of memory."""


class IsolatedProcess:
    """A context manager around one process, killed when `seconds` have passed since its start.

    With None it lives until it is left, and each request has a time of its own (`tools_app.warmprocesses`).
    """

    def __init__(
        self, script: str | Path, *, seconds: float | None, libraries: bool = False
    ) -> None:
        """`script` is the name of one of ours in `tools_app/isolated/`, or the file of another."""
        self._script = script if isinstance(script, Path) else _SCRIPTS / f"{script}.py"
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
        self._timer = self._clock(self._seconds) if self._seconds is not None else None
        self._limit()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._process.kill()
        self._process.wait()
        self._stdout.close()
        try:
            self._stdin.close()
        except BrokenPipeError:  # it died with a request half read
            pass

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], *, seconds: float | None = None) -> Any:
        """The answer to one request, which may take `seconds` by the clock if they are given. Raises
        `IsolationTimedOut`, also where the process ran out of the time of the processor that it had set
        itself, or `IsolationFailed`."""
        clock = self._clock(seconds) if seconds is not None else None
        try:
            return self._answer_to(request)
        finally:
            if clock is not None:
                clock.cancel()

    def _answer_to(self, request: Mapping[str, Any]) -> Any:
        try:
            self._stdin.write(json.dumps(request).encode() + b"\n")
            self._stdin.flush()
            reply = self._stdout.readline(REPLY_LIMIT)
        except BrokenPipeError:
            reply = b""
        if not reply.endswith(b"\n"):
            if len(reply) == REPLY_LIMIT:
                self._process.kill()
                raise IsolationFailed
            if self._expired or self._process.wait() in _OUT_OF_TIME:
                raise IsolationTimedOut
            raise IsolationFailed
        try:
            # What it took apart may have taken it over, and holds signs that no text may.
            return read_mended_json(reply, limit=REPLY_LIMIT, parts=REPLY_LIMIT)
        except Unreadable:
            raise IsolationFailed from None

    def _clock(self, seconds: float) -> Timer:
        timer = Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        return timer

    def _expire(self) -> None:
        self._expired = True
        self._process.kill()

    def _limit(self) -> None:
        # The processor limit also ends it when this process was killed and nobody else can.
        if sys.platform == "linux":
            try:
                if self._seconds is not None:
                    seconds = int(self._seconds) + 2
                    resource.prlimit(self._process.pid, resource.RLIMIT_CPU, (seconds, seconds))
                memory = (MEMORY_LIMIT, MEMORY_LIMIT)
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, memory)
                Path(f"/proc/{self._process.pid}/oom_score_adj").write_text(FIRST_TO_GO)
            except OSError:  # it has ended, or this is forbidden here
                pass
