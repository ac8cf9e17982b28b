"""Starts a deployment's processes as forks of one that has imported everything.

A fork runs the same command with the same settings as a fresh start, in a session of its own, and dies by the
same signals; what it is spared are the imports, most of what the processes of a deployment cost. Settings are
read once: who has others than `LATE` begins afresh (`tests.scale.deployment`).
"""

from __future__ import annotations

import gc
import json
import os
import queue
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from importlib import import_module
from pathlib import Path
from typing import Any

from agentsite.environment import BASE_DIR

LATE = frozenset({"AGENTSITE_METRICS_PORT", "AGENTSITE_DRAIN_SECONDS"})
"""Numbers that are looked up when they are used, so that a fork may have its own."""
LONGEST = 1024 * 1024
BETWEEN_LOOKS = 0.05
"""Seconds, in which nobody hears yet that a fork has ended."""
PATIENCE = 180.0
MODULES = (
    *("agentsite.routing", "agentsite.pages", "agentsite.probes", "agentsite.bodies"),
    *("anthropic", "uvicorn", "uvloop", "live.redis_hub"),
    *("celery.bin.celery", "celery.apps.beat", "celery.apps.worker", "celery.concurrency.thread"),
    *("celery.worker.consumer", "celery.worker.loops", "celery.fixups.django"),
    *("kombu.transport.redis", "tests.scale.helper"),
)


class Forked:
    """What of `subprocess.Popen` is used of them."""

    def __init__(self, pid: int, end: Future[int]) -> None:
        self.pid = pid
        self._end = end

    def poll(self) -> int | None:
        return self._end.result() if self._end.done() else None

    def wait(self, timeout: float | None = None) -> int:
        try:
            return self._end.result(timeout)
        except NotYet:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None

    def send_signal(self, number: int) -> None:
        if not self._end.done():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass  # it has ended, and that is on its way

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Warm:
    """The process that forks, and the line to it; `start` may be called by any thread."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, log.open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.scale.warm", str(theirs.fileno())],
                env=dict(environment),
                cwd=BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=[theirs.fileno()],
            )
        self._asking = threading.Lock()
        self._begun: queue.Queue[Forked] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def start(
        self, arguments: Sequence[str], late: Mapping[str, str], files: tuple[int, int, int]
    ) -> Forked:
        """`python *arguments`; `files` become its input, output and errors."""
        asked = json.dumps([list(arguments), dict(late)]).encode()
        with self._asking:
            socket.send_fds(self._line, [asked], list(files))
            return self._begun.get(timeout=PATIENCE)

    def close(self) -> None:
        """The forks are their owner's to end."""
        self._line.shutdown(socket.SHUT_WR)
        self._process.wait(PATIENCE)
        self._line.close()

    def _listen(self) -> None:
        ends: dict[int, Future[int]] = {}
        while said := self._line.recv(LONGEST):
            pid, code = json.loads(said)
            if code is None:
                ends[pid] = Future()
                self._begun.put(Forked(pid, ends[pid]))
            else:
                ends.pop(pid).set_result(code)


def serve(line: socket.socket) -> Callable[[], Any]:
    """Returns in each fork what it has to do, and in this process nothing to do."""
    line.settimeout(BETWEEN_LOOKS)
    alive: set[int] = set()
    while True:
        for child in list(alive):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                alive.remove(child)
                line.send(json.dumps([child, os.waitstatus_to_exitcode(status)]).encode())
        try:
            asked, files, _flags, _address = socket.recv_fds(line, LONGEST, 3)
        except TimeoutError:
            continue
        if not asked:
            return lambda: None
        child = os.fork()
        if child == 0:
            line.close()
            return lambda: carry_out(asked, files)
        for file in files:
            os.close(file)
        alive.add(child)
        line.send(json.dumps([child, None]).encode())


def carry_out(asked: bytes, files: Sequence[int]) -> None:
    """In the fork: what the interpreter does with a command line."""
    from django.conf import settings  # noqa: PLC0415

    arguments, late = json.loads(asked)
    os.setsid()
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.environ.update(late)
    for name, value in late.items():
        setattr(settings, name, int(value))
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    import django  # noqa: PLC0415

    django.setup()
    from django.urls import get_resolver  # noqa: PLC0415

    _ = get_resolver().url_patterns
    for module in MODULES:
        import_module(module)
    gc.collect()
    gc.freeze()
    if threading.active_count() > 1:
        raise RuntimeError("something began when it was imported, and forks would share it")
    serve(socket.socket(fileno=int(sys.argv[1])))()


if __name__ == "__main__":
    main()
