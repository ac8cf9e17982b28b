"""A deployment of real processes: web servers, workers and a schedule, on a database and a Redis.

How they begin without importing everything anew is `tests.scale.warm`'s.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from agentsite.environment import BASE_DIR
from agentsite.local_services import free_port
from providers.scripted import Script
from tests.chat.sockets import View
from tests.scale.warm import LATE, Forked, Warm
from tests.standins.messages_api import MessagesApi

PATIENCE = 180.0
"""Seconds for a process to come up on a busy machine."""

Process = Forked | subprocess.Popen[bytes]
Begin = Callable[[Path], Process]
"""Begins a process that writes to this file."""


class Member:
    """One process, with a port at which it answers probes."""

    def __init__(self, begin: Begin, log: Path, port: int) -> None:
        self._begin = begin
        self._log = log
        self.port = port
        self.start()

    def start(self) -> None:
        self.process = self._begin(self._log)

    def ready(self) -> Self:
        until(lambda: self.get("/readyz")[0] == 200, PATIENCE, self.said)
        return self

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def said(self) -> str:
        return self._log.read_text()[-4000:]

    @property
    def name(self) -> str:
        return f":{self.process.pid}:"


class Api:
    """The loopback model service, on a thread of its own."""

    def __init__(self, script: Script) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.service = MessagesApi(script)
        asyncio.run_coroutine_threadsafe(self.service.__aenter__(), self._loop).result(PATIENCE)

    def stop(self) -> None:
        end = self.service.__aexit__(None, None, None)
        asyncio.run_coroutine_threadsafe(end, self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)


HELPER = ["-m", "tests.scale.helper"]


class Helper:
    """A process that does what it is told."""

    def __init__(self, begin: Callable[[tuple[int, int, int]], Process], log: Path) -> None:
        self._log = log
        asked, ask = os.pipe()
        answers, answer = os.pipe()
        with log.open("ab") as errors:
            self._process = begin((asked, answer, errors.fileno()))
        os.close(asked)
        os.close(answer)
        self._asks = os.fdopen(ask, "w")
        self._answers = os.fdopen(answers)

    def call(self, name: str, *arguments: Any) -> Any:
        self._asks.write(json.dumps([name, arguments]) + "\n")
        self._asks.flush()
        line = self._answers.readline()
        assert line, self._log.read_text()[-3000:]
        answer = json.loads(line)
        assert "problem" not in answer, answer["problem"]
        return answer["value"]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._asks.close()
        self._answers.close()


class Deployment:
    """Use as a context; every process it started has ended afterwards."""

    def __init__(
        self, directory: Path, database_url: str, redis_url: str, script: Script, **settings: object
    ) -> None:
        self.directory = directory
        self.counter = directory / "counted"
        self.counter.touch()
        self.api = Api(script)
        self.members: list[Member] = []
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = {
            **kept,
            "DJANGO_SETTINGS_MODULE": "tests.scale.settings",
            "AGENTSITE_ENV_FILE": "",
            "AGENTSITE_SECRET_KEY": "only-for-tests-" + "0123456789" * 5,
            "AGENTSITE_VAULT_KEY": "b25seS1mb3ItdGVzdHMtb25seS1mb3ItdGVzdHMtLS0=",
            "AGENTSITE_DATA_DIR": str(directory / "data"),
            "AGENTSITE_DATABASE_URL": database_url,
            "AGENTSITE_REDIS_URL": f"{redis_url}/0",
            "AGENTSITE_BROKER_URL": f"{redis_url}/1",
            "AGENTSITE_SWEEP_SECONDS": "1",
            "AGENTSITE_LEASE_SECONDS": "9",
            "AGENTSITE_DRAIN_SECONDS": "60",
            "AGENTSITE_METRICS_TOKEN": "metrics-token",
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": self.api.service.base_url,
            "TEST_COUNTER": str(self.counter),
            **{name: str(value) for name, value in settings.items()},
        }
        self.warm = Warm(self.environment, directory / "warm.log")
        self._helper = Helper(self._forked_helper, directory / "helper.log")
        self.call("migrate")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for member in self.members:
            if member.process.poll() is None:
                member.kill()
        self._helper.kill()
        self.warm.close()
        self.api.stop()

    # --- processes --------------------------------------------------------------------------------

    def web(self) -> Member:
        port = free_port()
        return self._start("web", ["manage.py", "serve", "--port", str(port)], port)

    def worker(self, **settings: str) -> Member:
        port = free_port()
        name = f"worker{len(self.members)}@%h"
        arguments = ["-m", "celery", "-A", "agentsite", "worker", "-n", name]
        return self._start("worker", arguments, port, AGENTSITE_METRICS_PORT=str(port), **settings)

    def beat(self) -> Member:
        return self._start("beat", ["-m", "celery", "-A", "agentsite", "beat"], 0)

    def _start(self, kind: str, arguments: list[str], port: int, **settings: str) -> Member:
        begin = self._fork if LATE.issuperset(settings) else self._afresh
        log = self.directory / f"{kind}{len(self.members)}.log"
        member = Member(partial(begin, arguments, settings), log, port)
        self.members.append(member)
        return member

    def _fork(self, arguments: list[str], settings: dict[str, str], log: Path) -> Process:
        with log.open("ab") as said, Path(os.devnull).open() as nothing:
            files = nothing.fileno(), said.fileno(), said.fileno()
            return self.warm.start(arguments, settings, files)

    def _afresh(self, arguments: list[str], settings: dict[str, str], log: Path) -> Process:
        with log.open("ab") as said:
            return subprocess.Popen(
                [sys.executable, *arguments],
                env={**self.environment, **settings},
                cwd=BASE_DIR,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def new_helper(self, **settings: str) -> Helper:
        """One with settings of its own, afresh."""

        def begin(files: tuple[int, int, int]) -> Process:
            asks, answers, errors = files
            return subprocess.Popen(
                [sys.executable, *HELPER],
                env={**self.environment, **settings},
                cwd=BASE_DIR,
                stdin=asks,
                stdout=answers,
                stderr=errors,
            )

        return Helper(begin, self.directory / "helper.log")

    def _forked_helper(self, files: tuple[int, int, int]) -> Process:
        return self.warm.start(HELPER, {}, files)

    def call(self, name: str, *arguments: Any, by: Helper | None = None) -> Any:
        """Have the helper do it; what it returned."""
        return (by or self._helper).call(name, *arguments)

    def facts(self, uid: str) -> dict[str, Any]:
        return dict(self.call("facts", uid))

    def rested(self, uid: str, times: int = 1, seconds: float = PATIENCE) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            now = self.facts(uid)
            at_rest = now["types"].count("session.status_idle") >= times
            free = all(run["state"] != "running" for run in now["runs"])
            return now if at_rest and free and now["status"] == "idle" else None

        return dict(until(look, seconds, self.said))

    def said(self) -> str:
        return "\n".join(f"--- {member._log.name}\n{member.said()}" for member in self.members)

    @property
    def counted(self) -> list[str]:
        return self.counter.read_text().split()


class Page:
    """A browser that comes back whenever its connection breaks, to whichever server answers."""

    def __init__(self, webs: list[Member], cookie: str, uid: str) -> None:
        self._webs = webs
        self._cookie = cookie
        self.uid = uid
        self.view = View()
        self.connections = 0
        self._line: ClientConnection | None = None
        self._accepted: set[str] = set()
        self._heard = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self._follow())
        await self.until(lambda: self._heard)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, holds: Callable[[], object], seconds: float = PATIENCE) -> None:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 - what it waits for may be in another process
                await asyncio.sleep(0.02)

    def shows(self, text: str) -> bool:
        return text in self.view.log

    async def post(self, text: str) -> None:
        """Say it again until it is accepted; the key makes sure that it is stored once."""
        await self._ask(text, type="message", content=text)

    async def stop(self) -> None:
        await self._send(type="stop")

    async def _ask(self, key: str, **frame: object) -> None:
        async with asyncio.timeout(PATIENCE):
            while key not in self._accepted:
                await self._send(key=key, **frame)
                for _ in range(50):
                    if key in self._accepted:
                        return
                    await asyncio.sleep(0.1)

    async def _send(self, **frame: object) -> None:
        line = self._line
        if line is not None:
            try:
                await line.send(orjson.dumps(frame).decode())
            except (OSError, WebSocketException):
                pass

    async def _follow(self) -> None:
        while True:
            web = self._webs[self.connections % len(self._webs)]
            self.connections += 1
            address = f"ws://127.0.0.1:{web.port}/ws/conversations/{self.uid}/?after=0"
            try:
                async with connect(
                    address,
                    origin=f"http://127.0.0.1:{web.port}",  # type: ignore[arg-type]
                    additional_headers={"Cookie": self._cookie},
                    compression=None,
                    open_timeout=20,
                    max_size=None,
                ) as self._line:
                    self.view = View()  # as a reload: nothing is remembered
                    async for message in self._line:
                        frame = orjson.loads(message)
                        if frame["type"] == "accepted":
                            self._accepted.add(frame["key"])
                        self.view.take(frame)
                        self._heard = True
            except (OSError, TimeoutError, WebSocketException):
                pass
            self._line = None
            await asyncio.sleep(0.2)


def until(holds: Callable[[], Any], seconds: float, explain: Callable[[], str] = str) -> Any:
    end = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < end, f"it did not come about in time\n{explain()}"
        time.sleep(0.1)
    return value
