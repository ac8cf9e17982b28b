"""What a database is made of, table by table, in a form that two of them can be compared in: nothing about
order and nothing about rows."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg

OF_POSTGRESQL = (
    """
    SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default,
           is_identity, collation_name
    FROM information_schema.columns WHERE table_schema = 'public'""",
    "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    """
    SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal""",
)

Schema = dict[str, list[str]]
"""By the table: its columns, constraints, indexes and triggers, sorted."""


def schema_of_sqlite(path: Path) -> Schema:
    with closing(sqlite3.connect(path)) as connection:
        return _by_table(
            (table, part)
            for kind, table, sql in connection.execute(
                "SELECT type, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
            )
            for part in (_parts(sql) if kind == "table" else [" ".join(sql.split())])
        )


def schema_of_postgresql(url: str) -> Schema:
    with psycopg.connect(url) as connection:
        return _by_table(
            (table, repr(part))
            for asked in OF_POSTGRESQL
            for table, *part in connection.execute(asked)
        )


def _by_table(parts: Iterable[tuple[str, str]]) -> Schema:
    schema = defaultdict(list)
    for table, part in parts:
        schema[table].append(part)
    return {table: sorted(has) for table, has in schema.items()}


def _parts(sql: str) -> Iterator[str]:
    """The head of a table, then its columns and constraints."""
    depth, part = 0, ""
    for token in re.findall(r"'(?:[^']|'')*'|\"[^\"]*\"|[(),]|[^(),'\"]+", sql):
        opened = depth
        depth += (token == "(") - (token == ")")
        if (opened, token) in {(0, "("), (1, ",")} or (token == ")" and depth == 0):
            yield " ".join(part.split())
            part = ""
        else:
            part += token
