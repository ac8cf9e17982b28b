"""Our backend for SQLite translates placeholders as Django's does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from django.db import OperationalError, connection, connections

from agentsite.sqlite3.base import DatabaseWrapper

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="is about SQLite"),
]


@pytest.mark.parametrize("again", range(2))
def test_percent_signs_that_are_no_placeholders_stay(again: int):
    with connection.cursor() as cursor:
        cursor.execute("SELECT '%%s', %s, '100%%'", ["given"])
        assert cursor.fetchone() == ("%s", "given", "100%")


def test_placeholders_may_have_names():
    with connection.cursor() as cursor:
        cursor.execute("SELECT %(second)s, %(first)s", {"first": 1, "second": 2})
        assert cursor.fetchone() == (2, 1)


def test_a_statement_of_any_length_is_translated():
    columns = ", ".join(["%s + 0"] * 1_500)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns}", [7] * 1_500)
        assert set(cursor.fetchone()) == {7}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[], DatabaseWrapper]]:
    """Connections to one file, as threads of a process have them."""
    given = {**connections["default"].settings_dict, "NAME": tmp_path / "db.sqlite3"}
    given["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 0.05}
    with ExitStack() as stack:

        def make() -> DatabaseWrapper:
            one = DatabaseWrapper(given, "turns")
            one.inc_thread_sharing()
            return stack.enter_context(closing(one))

        yield make


def begin(one: DatabaseWrapper) -> None:
    one.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_who_wants_to_write_waits_until_the_other_has_written(made, end: str):
    first, second = made(), made()
    begin(first)
    waiting = threading.Thread(target=begin, args=[second], daemon=True)
    waiting.start()
    waiting.join(0.3)
    # SQLite itself would have given up by now.
    assert waiting.is_alive()
    getattr(first, end)()
    waiting.join(30)
    assert not waiting.is_alive()
    assert second.connection.in_transaction


def test_a_lock_of_another_process_is_told_as_ever_and_holds_up_nobody_else(made):
    first, second = made(), made()
    begin(first)
    first._end_turn()  # as if it were another process's
    with pytest.raises(OperationalError, match="locked"):
        begin(second)
    first.rollback()
    begin(second)
    assert second.connection.in_transaction
