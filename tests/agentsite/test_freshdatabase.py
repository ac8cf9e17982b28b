"""An empty database gets its tables at once, and they are those that the migrations lead to."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from agentsite.environment import BASE_DIR
from tests.schemas import ONE_BY_ONE, schema_of_sqlite


def python(directory: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "agentsite.settings_test",
        "TEST_DATABASE_URL": f"sqlite:///{directory}/db.sqlite3",
    }
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=BASE_DIR,
        check=True,
        timeout=300,
        capture_output=True,
        text=True,
    ).stdout


def test_what_is_made_at_once_is_what_the_migrations_lead_to(tmp_path):
    at_once, one_by_one = tmp_path / "at_once", tmp_path / "one_by_one"
    at_once.mkdir()
    one_by_one.mkdir()

    assert "at once" in python(at_once, "manage.py", "migrate")
    python(one_by_one, "-c", ONE_BY_ONE)

    made = schema_of_sqlite(at_once / "db.sqlite3")
    assert made == schema_of_sqlite(one_by_one / "db.sqlite3")
    assert len(made["django_migrations"]) > 50
    assert "at once" not in python(at_once, "manage.py", "migrate")


def test_a_database_that_holds_a_table_goes_the_long_way(tmp_path):
    with closing(sqlite3.connect(tmp_path / "db.sqlite3")) as connection:
        connection.execute("CREATE TABLE somebodys (words text)")

    said = python(tmp_path, "manage.py", "migrate", "contenttypes")

    assert "at once" not in said
    assert "contenttypes.0002" in said
