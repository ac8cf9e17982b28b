"""What the measurements share: the stand-in, the reference, the load, and the product's processes.

Each is started when it is first needed and kept for all rounds, so that rounds are comparable.
"""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from bench import machine
from bench.commands import Helper
from bench.sites import Site, one_process, scaled

SERVICE_LATE_MS = 2.0
CLIENT_CORES = 0.8

Kept = TypeVar("Kept")


class Stage:
    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self._stack = ExitStack()
        self._directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        # PostgreSQL runs as somebody else where this runs as root.
        self._directory.chmod(0o711)
        self._kept: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def directory(self, name: str) -> Path:
        path = self._directory / name
        path.mkdir(mode=0o711, exist_ok=True)
        return path

    @property
    def stack(self) -> ExitStack:
        """For what a measurement wants to keep until the end."""
        return self._stack

    def kept(self, name: str, make: Callable[[], Kept]) -> Kept:
        """What `make` made in the first round, for all rounds."""
        if name not in self._kept:
            self._kept[name] = make()
        made: Kept = self._kept[name]
        return made

    # --- processes --------------------------------------------------------------------------------

    @cached_property
    def service(self) -> str:
        """Where the stand-in listens."""
        helper = Helper("bench.model_service", pinned=machine.service_cores())
        self._stack.enter_context(helper)
        return f"http://127.0.0.1:{helper.hear()['port']}"

    @cached_property
    def sdk(self) -> Helper:
        return self._stack.enter_context(Helper("bench.sdk", pinned=machine.server_cores()))

    @cached_property
    def browsers(self) -> Helper:
        return self._stack.enter_context(Helper("bench.browsers", pinned=machine.load_cores()))

    @cached_property
    def beginners(self) -> Helper:
        return self._stack.enter_context(Helper("bench.beginners", pinned=machine.load_cores()))

    @cached_property
    def site(self) -> Site:
        """One process on SQLite, pinned to the server's core."""
        return self._stack.enter_context(
            one_process(self.directory("one"), self.service, pinned=machine.server_cores())
        )

    @cached_property
    def split_site(self) -> Site:
        """One web process and one worker, with PostgreSQL and Redis; both on the server's core."""
        return self._stack.enter_context(
            scaled(
                self.directory("split"),
                self.service,
                web=1,
                workers=1,
                pinned=machine.server_cores(),
            )
        )

    # --- the stand-in -----------------------------------------------------------------------------

    def ask_service(self, method: str, path: str) -> Any:
        request = urllib.request.Request(f"{self.service}{path}", method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - loopback
            return json.loads(response.read())

    def reset_service(self, *watched: int) -> None:
        """Forget what was, and read these processes' clocks at each request from now on."""
        query = "&".join(f"pid={pid}" for pid in watched)
        self.ask_service("POST", f"/watch?{query}")
        self.ask_service("POST", "/reset")

    def doubt(self, client_cores: float = 0.0) -> str:
        """Why what happened since the last reset does not count, or nothing."""
        late = self.ask_service("GET", "/stats")["late_p99_ms"]
        doubts = []
        if late > SERVICE_LATE_MS:
            doubts.append(f"the stand-in was {late:.1f} ms late")
        if client_cores > CLIENT_CORES:
            doubts.append(f"the load used {client_cores:.2f} core")
        return " and ".join(doubts)
