"""One prepared database, and a copy of it for each trial."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection, connections

from tests import prepared

TEMPLATE = "killing_template"


def release() -> None:
    """Let go of every connection, so that a fork shares none and a template has no visitors."""
    connections.close_all()
    close_pool = getattr(connection, "close_pool", None)
    if close_pool is not None:
        close_pool()


class SQLite:
    def __init__(self, folder: Path) -> None:
        self._template = folder / "template.sqlite3"

    def make(self) -> None:
        prepared.copy(self._template)
        self.use_template()
        call_command("migrate", interactive=False, verbosity=0)

    def use_template(self) -> None:
        _use(str(self._template))

    def copy_for(self, folder: Path) -> str:
        release()
        copy = folder / "db.sqlite3"
        shutil.copy(self._template, copy)
        return str(copy)

    def settle(self) -> None:
        """The template as one file, with nothing left in its write-ahead log."""
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def drop(self, name: str) -> None:
        pass


class PostgreSQL:
    def __init__(self, _folder: Path) -> None:
        self._home = str(connection.settings_dict["NAME"])
        self._copies = 0

    def make(self) -> None:
        self.drop(TEMPLATE)  # of another form
        self._at_home(f"CREATE DATABASE {TEMPLATE}")
        self.use_template()
        call_command("migrate", interactive=False, verbosity=0)

    def use_template(self) -> None:
        release()
        _use(TEMPLATE)

    def copy_for(self, _folder: Path) -> str:
        self._copies += 1
        name = f"killing_{self._copies}"
        self._at_home(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        return name

    def settle(self) -> None:
        pass

    def drop(self, name: str) -> None:
        self._at_home(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _at_home(self, statement: str) -> None:
        release()
        _use(self._home)
        with connection.cursor() as cursor:
            cursor.execute(statement)
        release()


def _use(name: str) -> None:
    settings: dict[str, Any] = connections["default"].settings_dict
    settings["NAME"] = name


def use(name: str) -> None:
    release()
    _use(name)


def of_this_run(folder: Path) -> SQLite | PostgreSQL:
    return SQLite(folder) if connection.vendor == "sqlite" else PostgreSQL(folder)
