"""Empties the database after a test that committed, which Django does through this command's name.

Django's own clears every table and then makes content types and permissions anew for every app, half a second
a test. This one clears the tables that have rows and leaves what stands there after every migration.
"""

from __future__ import annotations

from typing import Any

from django.core.management.color import no_style
from django.core.management.commands import flush
from django.db import IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

Rows = list[tuple[Any, ...]]

LOOKS = 5
"""A thread that a test left behind may fill a table that was empty when it was looked at."""

_tables: dict[str, list[str]] = {}
_kept: dict[str, dict[str, Rows]] = {}
"""By the database's name: what has rows when it was just migrated, and all of them."""


class Command(flush.Command):
    def handle(self, **options: Any) -> None:
        connection = connections[options["database"]]
        name = str(connection.settings_dict["NAME"])
        if options.get("reset_sequences", True) or not _is_as_kept(connection, name):
            super().handle(**options)
            _keep(connection, name)
            return
        for left in reversed(range(LOOKS)):
            filled = [table for table in _filled(connection, name) if table not in _kept[name]]
            if not filled:
                return
            try:
                connection.ops.execute_sql_flush(_statements(connection, filled))
            except IntegrityError:
                if not left:
                    raise
            else:
                return


def _statements(connection: BaseDatabaseWrapper, filled: list[str]) -> list[str]:
    """What refers to an emptied table is empty or among these.

    PostgreSQL would truncate all others with them, and make the files of each index anew: half a second.
    """
    if connection.vendor != "postgresql":
        return connection.ops.sql_flush(no_style(), filled)
    quote = connection.ops.quote_name
    return [
        "SET LOCAL session_replication_role = replica",
        *(f"DELETE FROM {quote(table)}" for table in filled),
    ]


def _keep(connection: BaseDatabaseWrapper, name: str) -> None:
    _tables[name] = connection.introspection.django_table_names(
        only_existing=True, include_views=False
    )
    _kept[name] = {table: _rows(connection, table) for table in _filled(connection, name)}


def _is_as_kept(connection: BaseDatabaseWrapper, name: str) -> bool:
    return name in _kept and all(
        _same(_rows(connection, table), rows) for table, rows in _kept[name].items()
    )


def _same(some: Rows, others: Rows) -> bool:
    """In whatever order; as they lie there they mostly come in the same one."""
    return some == others or sorted(some, key=repr) == sorted(others, key=repr)


def _filled(connection: BaseDatabaseWrapper, name: str) -> list[str]:
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {quote(table)})"
                for table in _tables[name]
            )
        )
        return [table for (table,) in cursor.fetchall()]


def _rows(connection: BaseDatabaseWrapper, table: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
        return list(cursor.fetchall())
