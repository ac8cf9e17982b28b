"""Helper processes of the bench: started once, told what to do in JSON lines, answering in kind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

ROOT = Path(__file__).resolve().parents[1]


class HelperFailed(Exception):
    """A helper process ended or answered with an error; the message holds what it said."""


class Helper:
    """`python -m <module>` on certain cores; with `ask` it is given one task at a time."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        pinned: Collection[int] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        # Kept, so that a helper that ends too soon can be asked why.
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in `stop`
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=dict(env) if env is not None else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        # Both are pipes, see above.
        self._input = cast(IO[str], self._process.stdin)
        self._output = cast(IO[str], self._process.stdout)
        self.pid = self._process.pid
        self._name = module
        if pinned:
            os.sched_setaffinity(self.pid, pinned)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def hear(self, patience: float = 600.0) -> dict[str, Any]:
        """Its next line. Raises HelperFailed at its end, and when it says nothing for too long."""
        timer = threading.Timer(patience, self._process.kill)
        timer.start()
        try:
            line = self._output.readline()
        finally:
            timer.cancel()
        if not line:
            code = self._process.wait()
            self._said.seek(0)
            raise HelperFailed(f"{self._name} ended with {code}: {self._said.read()[-2000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise HelperFailed(f"{self._name}: {answer['error']}")
        return dict(answer)

    def ask(self, **task: Any) -> dict[str, Any]:
        self._input.write(json.dumps(task) + "\n")
        self._input.flush()
        return self.hear()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


async def answer_tasks(perform: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    """A helper's own side: perform the task of each line of stdin, until it is closed."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            answer = await perform(json.loads(line))
        except Exception as problem:
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
