"""What a database is made of, in a form that two of them can be compared in: nothing about order or rows but
the migrations that are recorded, the content types and the permissions."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg

ONE_BY_ONE = (
    "import django; django.setup();"
    "from django.core.management import call_command;"
    "from django.core.management.commands.migrate import Command;"
    "call_command(Command(), verbosity=0)"
)
"""For `python -c`: Django's own `migrate`, as if ours were not there."""

RECORDED = {
    "django_migrations": "SELECT app, name FROM django_migrations",
    "django_content_type": "SELECT app_label, model FROM django_content_type",
    "auth_permission": "SELECT codename, name FROM auth_permission",
}

OF_POSTGRESQL = {
    "columns": """
        SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default,
               is_identity, collation_name
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "triggers": """
        SELECT tgrelid::regclass::text, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal""",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
}

Schema = dict[str, list[object]]


def schema_of_sqlite(path: Path) -> Schema:
    with closing(sqlite3.connect(path)) as connection:
        schema: Schema = {
            f"{kind} {name}": sorted(_parts(sql)) if kind == "table" else [" ".join(sql.split())]
            for kind, name, sql in connection.execute(
                "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
            )
        }
        recorded = {name: sorted(connection.execute(asked)) for name, asked in RECORDED.items()}
    return schema | recorded


def schema_of_postgresql(url: str) -> Schema:
    with psycopg.connect(url) as connection:
        return {
            name: sorted(connection.execute(asked).fetchall(), key=repr)
            for name, asked in (OF_POSTGRESQL | RECORDED).items()
        }


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
