"""The product as it is deployed: real processes on a prepared installation of their own.

`one_process` is what `manage.py serve` starts; `scaled` puts PostgreSQL, Redis and workers beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentsite.local_services import LocalPostgreSQL, LocalRedis, free_port
from bench.commands import ROOT, Helper

PATIENCE = 60.0


def environment(directory: Path, service: str, **settings: str) -> dict[str, str]:
    """What a process of the installation in `directory` is given; nothing of the caller's counts."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AGENTSITE_", "ANTHROPIC_", "OPENAI_", "DJANGO_"))
    }
    return kept | {
        "DJANGO_SETTINGS_MODULE": "bench.settings",
        "AGENTSITE_ENV_FILE": str(directory / "env"),
        "AGENTSITE_DATA_DIR": str(directory / "data"),
        "AGENTSITE_SECRET_KEY": "only-for-the-bench-" + "0123456789" * 5,
        "AGENTSITE_VAULT_KEY": "b25seS1mb3ItdGVzdHMtb25seS1mb3ItdGVzdHMtLS0=",
        "ANTHROPIC_API_KEY": "bench",
        "ANTHROPIC_BASE_URL": service,
        # The bench is one person who talks more than any, in more conversations at once.
        "AGENTSITE_MESSAGES_PER_MINUTE": "0",
        "AGENTSITE_API_READS_PER_MINUTE": "1000000",
        "AGENTSITE_API_WRITES_PER_MINUTE": "1000000",
        "AGENTSITE_CONCURRENT_RUNS": "2000",
        "AGENTSITE_RUNS_PER_PERSON": "0",
        "AGENTSITE_LOG_LEVEL": "WARNING",
        **settings,
    }


@dataclass
class Site:
    """A running installation. `pids` are the processes that serve and work."""

    directory: Path
    env: Mapping[str, str]
    port: int
    installation: Helper
    cookie: str
    web: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _beginner: dict[str, str] = field(default_factory=dict)
    _spare: list[list[str]] = field(default_factory=list)
    _crowds: dict[int, dict[str, str]] = field(default_factory=dict)

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in (*self.web, *self.workers)]

    def conversations(self, count: int) -> list[list[str]]:
        """Fresh ones, as the helpers take them."""
        while len(self._spare) < count:
            made = self.installation.ask(what="conversations", count=max(500, count))
            self._spare += made["conversations"]
        given, self._spare = self._spare[:count], self._spare[count:]
        return given

    @property
    def beginner(self) -> dict[str, str]:
        """What `bench.beginners` need to begin conversations here, as a program or as a person."""
        if not self._beginner:
            self._beginner = {**self.installation.ask(what="token"), "cookie": self.cookie}
        return self._beginner

    def crowd(self, count: int) -> dict[str, str]:
        """`cookie` of a person with so many conversations, and a `word` that one of them holds."""
        if count not in self._crowds:
            self._crowds[count] = self.installation.ask(what="crowd", count=count)
        return self._crowds[count]

    def get(self, path: str, cookie: str = "") -> bytes:
        """Raises RuntimeError where another page is shown than was asked for: that of signing in."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Cookie": cookie or self.cookie}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310
            if not response.url.endswith(path):
                raise RuntimeError(f"{path} was answered with {response.url}")
            return bytes(response.read())


@contextmanager
def one_process(
    directory: Path, service: str, *, pinned: Collection[int], **settings: str
) -> Iterator[Site]:
    """Pages, sockets and runs in one process, on SQLite."""
    env = environment(directory, service, **settings)
    with ExitStack() as stack:
        site = _prepared(stack, directory, env)
        site.web.append(_serve(stack, site, pinned))
        _wait_for(site)
        yield site


@contextmanager
def scaled(
    directory: Path, service: str, *, web: int, workers: int, pinned: Collection[int]
) -> Iterator[Site]:
    """Web and worker processes with PostgreSQL and Redis between them; these are not pinned."""
    with ExitStack() as stack:
        postgresql, redis = LocalPostgreSQL(directory), LocalRedis()
        postgresql.start()
        stack.callback(postgresql.stop)
        redis.start()
        stack.callback(redis.stop)
        env = environment(
            directory,
            service,
            AGENTSITE_DATABASE_URL=postgresql.url,
            AGENTSITE_REDIS_URL=f"{redis.url}/0",
            AGENTSITE_BROKER_URL=f"{redis.url}/1",
        )
        site = _prepared(stack, directory, env)
        site.web.append(_serve(stack, site, pinned, "--workers", str(web)))
        celery = [sys.executable, "-m", "celery", "-A", "agentsite", "worker"]
        for number in range(workers):
            command = [*celery, "--hostname", f"bench{number}@%h"]
            site.workers.append(_start(stack, site, command, pinned))
        _wait_for(site)
        time.sleep(5.0)  # workers announce themselves to nobody
        yield site


UNDER_UVICORN = (
    "import sys, django; django.setup(); from agentsite.server import serve_with_uvicorn; "
    "serve_with_uvicorn('127.0.0.1', int(sys.argv[1]), 1)"
)


@contextmanager
def under_uvicorn(site: Site, *, pinned: Collection[int]) -> Iterator[int]:
    """One more process that serves the installation, as each of many does; at which port."""
    with ExitStack() as stack:
        also = replace(site, port=free_port(), web=[], workers=[])
        _start(stack, also, [sys.executable, "-c", UNDER_UVICORN, str(also.port)], pinned)
        _wait_for(also)
        yield also.port


def _prepared(stack: ExitStack, directory: Path, env: Mapping[str, str]) -> Site:
    (directory / "data").mkdir(parents=True, exist_ok=True)
    installation = stack.enter_context(Helper("bench.prepare", env=env))
    cookie = installation.ask(what="prepare")["cookie"]
    return Site(directory, env, free_port(), installation, cookie)


def _serve(
    stack: ExitStack, site: Site, pinned: Collection[int], *more: str
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "manage.py", "serve", "--port", str(site.port), *more]
    return _start(stack, site, command, pinned)


def _start(
    stack: ExitStack, site: Site, command: list[Any], pinned: Collection[int]
) -> subprocess.Popen[bytes]:
    said = stack.enter_context((site.directory / "said.txt").open("ab"))
    process = subprocess.Popen(command, cwd=ROOT, env=dict(site.env), stdout=said, stderr=said)
    if pinned:
        os.sched_setaffinity(process.pid, pinned)
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(site: Site) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            site.get("/new/")
            return
        except OSError:
            if time.monotonic() > deadline:
                said = (site.directory / "said.txt").read_text(errors="replace")
                raise TimeoutError(f"the server did not come up: {said[-2000:]}") from None
            time.sleep(0.1)
