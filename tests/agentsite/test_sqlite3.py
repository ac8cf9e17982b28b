"""Our backend for SQLite translates placeholders as Django's does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from django.db import OperationalError, connection, connections, transaction

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


@pytest.fixture
def alone(made) -> DatabaseWrapper:
    """A connection in a transaction that is nobody else's, with a table of its own."""
    one: DatabaseWrapper = made()
    begin(one)
    one.in_atomic_block = True
    with one.cursor() as cursor:
        cursor.execute("CREATE TABLE thing (name TEXT)")
    return one


def opened(one: DatabaseWrapper) -> str:
    name = one.savepoint()
    assert name is not None
    return name


def add(one: DatabaseWrapper, name: str) -> None:
    with one.cursor() as cursor:
        cursor.execute("INSERT INTO thing VALUES (%s)", [name])


def names(one: DatabaseWrapper) -> list[str]:
    with one.cursor() as cursor:
        cursor.execute("SELECT name FROM thing ORDER BY rowid")
        return [name for (name,) in cursor.fetchall()]


def test_savepoints_one_after_the_other_are_the_same_statements(alone: DatabaseWrapper):
    said: list[str] = []
    alone.connection.set_trace_callback(said.append)
    for _ in range(3):
        alone.savepoint_commit(opened(alone))
    assert len(said) == 6
    assert len(set(said)) == 2


def test_a_savepoint_inside_another_is_rolled_back_alone(alone: DatabaseWrapper):
    outer = opened(alone)
    add(alone, "outer")
    inner = opened(alone)
    add(alone, "inner")
    alone.savepoint_rollback(inner)
    alone.savepoint_commit(inner)
    add(alone, "after")
    alone.savepoint_commit(outer)
    assert names(alone) == ["outer", "after"]


def test_a_savepoint_is_rolled_back_with_those_inside_it_that_are_open(alone: DatabaseWrapper):
    add(alone, "before")
    outer = opened(alone)
    opened(alone)
    add(alone, "lost")
    alone.savepoint_rollback(outer)
    again = opened(alone)
    add(alone, "kept")
    alone.savepoint_commit(again)
    alone.savepoint_commit(outer)
    assert names(alone) == ["before", "kept"]


class Refused(Exception):
    pass


def test_what_is_to_happen_at_the_end_stays_when_a_later_savepoint_is_rolled_back(
    django_capture_on_commit_callbacks,
):
    happened: list[str] = []
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        with transaction.atomic():
            transaction.on_commit(lambda: happened.append("first"))
        with suppress(Refused), transaction.atomic():
            transaction.on_commit(lambda: happened.append("second"))
            raise Refused
    assert happened == ["first"]
