"""PostgreSQL and Redis of the tests' own: they rely on nothing that runs already, and skip nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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
