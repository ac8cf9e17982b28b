"""Whether this process can do its work now, and if not, why: for load balancers and people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import connection

from agents.commandtrial import Trial, commands_problem, known_trials, last_trial
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


def commands_in_words() -> str:
    """`ok`, why no command can run here and what mends it; empty before this process has tried. One that
    runs none itself says what its workers report: it is well where any of them runs commands."""
    trial = last_trial()
    if trial is None:
        if not known_trials():
            return ""
        trial = commands_problem() or Trial()
    return OK if trial.works else f"{trial.problem} Remedy: {trial.remedy}"


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


_files: dict[Path, tuple[int, int]] = {}
"""The database files this process began with: device and inode."""


def remember_database_file() -> None:
    """To be called at the start: a file that is deleted under a running server goes on answering those
    who have it open, and is made anew, empty, by who opens it next."""
    file = _database_file()
    if file is not None and file.exists():
        _files.setdefault(file, _identity(file))


def _database_file() -> Path | None:
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or not Path(name).is_absolute():
        return None
    return Path(name)


def _identity(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_dev, status.st_ino


def _database() -> None:
    file = _database_file()
    if file is not None:
        if not file.exists():
            raise _NotReady("the database file is gone: restore it and start the server again")
        if _files.setdefault(file, _identity(file)) != _identity(file):
            raise _NotReady("the database file is another one: start the server again")
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
