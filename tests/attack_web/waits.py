"""What others notice of an attack: how long bob's request waits, how much memory the server takes."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx2

from tests.attack_web.case import Got, tried
from tests.attack_web.visitors import Visitor
from tests.attack_web.world import World

MOST_SECONDS = 1.0
"""What a request of somebody else may wait, on a machine that is busy with tests besides. What stood
still here once, stood for ten seconds and more."""
_PAUSE = 0.02
_STILL = 1.2


class Waits:
    """While it is entered, somebody asks the site again and again; `longest` is the longest wait."""

    def __init__(self, world: World, address: str = "") -> None:
        self._world = world
        self._address = address or world.address
        self._over = threading.Event()
        self._asked = threading.Event()
        self.longest = 0.0
        self._thread = threading.Thread(target=self._ask_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        tried(self._asked.wait(20), "bob's request was not even answered before")
        self.longest = 0.0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(60)

    def _ask_on(self) -> None:
        with Visitor(self._address, token=self._world.bobs, source="127.0.0.3") as bob:
            while not self._over.is_set():
                began = time.monotonic()
                try:
                    status = bob.get("/api/auth/me").status_code
                except httpx2.HTTPError:
                    status = 0
                waited = time.monotonic() - began
                if status == 200:
                    self._asked.set()
                self.longest = max(self.longest, waited if status == 200 else 60.0)
                self._over.wait(_PAUSE)

    @property
    def got(self) -> Got:
        if self.longest <= MOST_SECONDS:
            return ""
        return f"somebody else's request waited {self.longest:.1f} s"


_seen: set[int] = set()


def require_that_waiting_is_seen(world: World) -> None:
    """Once a run: a server that stands still for a moment is noticed, so that one that goes on is, too."""
    pid = world.site.pid
    if pid in _seen:
        return
    with Waits(world) as waits:
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(_STILL)
        finally:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.1)
    tried(waits.got, "a server that stands still is not noticed")
    _seen.add(pid)


def memory(pid: int) -> int:
    """Bytes that a process and its children hold, without a child that was begun and does nothing of its own
    yet: it is told to hold all that its parent does."""
    total = 0
    own = b""
    for one in (pid, *_children(pid)):
        try:
            called = Path(f"/proc/{one}/cmdline").read_bytes()
            if one == pid or called != own:
                total += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        own = own or called
    return total * os.sysconf("SC_PAGE_SIZE")


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, file.read_text().split())
        except OSError:
            continue
    return found


class Memory:
    """While it is entered, the most that the server grew by is noted as `grown`, in bytes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._before = memory(pid)
        self.grown = 0
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(10)

    def _look_on(self) -> None:
        while not self._over.wait(0.05):
            self.grown = max(self.grown, memory(self._pid) - self._before)
