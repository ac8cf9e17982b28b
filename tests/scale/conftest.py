"""PostgreSQL and Redis of the tests' own: they rely on nothing that runs already, and skip nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from agentsite.environment import BASE_DIR
from agentsite.local_services import LocalPostgreSQL, LocalRedis


@pytest.fixture(scope="session")
def postgresql() -> Iterator[LocalPostgreSQL]:
    # Not below pytest's own directory, which is closed to the user PostgreSQL runs as under root.
    with tempfile.TemporaryDirectory(prefix="agentsite-scale-") as directory:
        Path(directory).chmod(0o755)
        server = LocalPostgreSQL(Path(directory), durable=False)
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="session")
def migrated(postgresql: LocalPostgreSQL) -> str:
    """The name of a migrated, empty database for others to begin as; nobody works on it."""
    name = "migrated"
    run_python(postgresql.make(name), "manage.py", "migrate", "--verbosity", "0")
    return name


def run_python(database_url: str, *arguments: str) -> None:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "agentsite.settings_test",
        "TEST_DATABASE_URL": database_url,
    }
    subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=BASE_DIR, check=True, timeout=300
    )


@pytest.fixture(scope="session")
def new_database(postgresql: LocalPostgreSQL, migrated: str) -> Callable[[str], str]:
    """The URL of a database of this name, migrated and empty."""
    return partial(postgresql.make, template=migrated)


@pytest.fixture(scope="session")
def _redis() -> Iterator[LocalRedis]:
    server = LocalRedis()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis(_redis: LocalRedis) -> LocalRedis:
    """Empty and running, whatever a test before did to it."""
    _redis.stop()
    _redis.start()
    return _redis
