"""An empty database gets its tables at once, and they are those that the migrations lead to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from agentsite.environment import BASE_DIR
from agentsite.freshdatabase import make_all_tables
from tests.schemas import schema_of_sqlite

HOW_MUCH = ["--all"] if os.environ.get("MIGRATIONS") == "all" else []


def python(directory: Path, *arguments: str) -> str:
    directory.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "agentsite.settings_test",
        "TEST_DATABASE_URL": f"sqlite:///{directory}/db.sqlite3",
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=BASE_DIR,
        check=False,
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_made_at_once_is_what_the_migrations_lead_to(tmp_path):
    assert "at once" in python(tmp_path / "at_once", "manage.py", "migrate")
    python(tmp_path / "one_by_one", "-m", "tests.onebyone", *HOW_MUCH)

    made = schema_of_sqlite(tmp_path / "at_once" / "db.sqlite3")
    expected = schema_of_sqlite(tmp_path / "one_by_one" / "db.sqlite3")
    assert len(expected) > 20
    assert {table: made.get(table) for table in expected} == expected
    if HOW_MUCH:
        assert made == expected


def test_nothing_is_left_to_do_after_it(db):
    """The database of the tests is one that was made at once."""
    recorded = set(MigrationRecorder(connection).applied_migrations())

    assert recorded == set(MigrationLoader(connection).disk_migrations)


def test_a_database_that_holds_a_table_is_left_to_django(db):
    assert not make_all_tables(connection)
