"""Whether this process can do its work now, and if not, why: for load balancers and people."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.db import connection

from agentsite import startup
from jobs.engine import engine
from tools_app import sandboxes

SECONDS = 2.0
"""How long each of them may take to answer."""

OK = "ok"


def readiness() -> dict[str, str]:
    """What was looked at, each `ok` or why not. Never raises; reads the database."""
    checks: dict[str, Callable[[], None]] = {"process": _process, "database": _database}
    checks["migrations"] = _migrations
    if settings.AGENTSITE_REDIS_URL:
        checks["redis"] = _redis
    if settings.AGENTSITE_BROKER_URL:
        checks["broker"] = _broker
    return {name: _word(check) for name, check in checks.items()}


def sandboxes_in_words() -> dict[str, str]:
    """What this process found of its sandboxes, each `ok` or why not; empty before it has looked.

    No part of readiness: without one, agents do all their work but run no commands.
    """
    return {
        name: OK if found.available else found.problem for name, found in sandboxes.found().items()
    }


class _NotReady(Exception):
    """Says why."""


def _word(check: Callable[[], None]) -> str:
    try:
        check()
    except _NotReady as why:
        return str(why)
    except Exception as problem:
        # Their messages may name hosts and users; whoever may know reads the log of the process.
        return f"out of reach ({type(problem).__name__})"
    return OK


def _process() -> None:
    if engine.draining:
        raise _NotReady("stopping")


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


_are_migrated = False


def _migrations() -> None:
    global _are_migrated
    if not _are_migrated:
        missing = startup.missing_migrations()
        if missing:
            raise _NotReady(f"{missing} missing: run `manage.py migrate`")
        _are_migrated = True


def _redis() -> None:
    from redis import Redis  # noqa: PLC0415 - heavy, imported on first use

    client = Redis.from_url(
        settings.AGENTSITE_REDIS_URL, socket_connect_timeout=SECONDS, socket_timeout=SECONDS
    )
    try:
        client.ping()
    finally:
        client.close()


def _broker() -> None:
    from jobs.broker import app  # noqa: PLC0415 - heavy, imported on first use

    with app.connection_for_write() as line:
        line.ensure_connection(max_retries=1, interval_start=0, timeout=SECONDS)
