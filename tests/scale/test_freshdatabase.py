"""PostgreSQL, too, gets the tables at once that the migrations lead to."""

from __future__ import annotations

from tests.scale.conftest import run_python
from tests.schemas import ONE_BY_ONE, schema_of_postgresql


def test_what_is_made_at_once_is_what_the_migrations_lead_to(postgresql, migrated):
    one_by_one = postgresql.make("one_by_one")
    run_python(one_by_one, "-c", ONE_BY_ONE)

    made = schema_of_postgresql(postgresql.make("at_once", template=migrated))
    assert made == schema_of_postgresql(one_by_one)
    assert len(made["django_migrations"]) > 50
