"""Our backend for SQLite translates placeholders as Django's does."""

from __future__ import annotations

import pytest
from django.db import connection

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
