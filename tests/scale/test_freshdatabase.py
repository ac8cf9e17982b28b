"""PostgreSQL, too, gets the tables at once that the migrations lead to."""

from __future__ import annotations

from tests.agentsite.test_freshdatabase import HOW_MUCH
from tests.scale.conftest import run_python
from tests.schemas import schema_of_postgresql


def test_what_is_made_at_once_is_what_the_migrations_lead_to(postgresql, migrated):
    one_by_one = postgresql.make("one_by_one")
    run_python(one_by_one, "-m", "tests.onebyone", *HOW_MUCH)

    made = schema_of_postgresql(postgresql.make("at_once", template=migrated))
    expected = schema_of_postgresql(one_by_one)
    assert len(expected) > 20
    assert {table: made.get(table) for table in expected} == expected
    if HOW_MUCH:
        assert made == expected
