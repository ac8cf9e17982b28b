"""Conditions by which rows are looked up whose keys are known, as cheap for hundreds as for one.

Joined with what may be seen, PostgreSQL begins with that, which are all memories of a person's stores; and of
keys that are given one by one, each is compiled, split and bound for itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from django.db.models import BooleanField, Exists, F, Func


class ExistsForEach(Exists):
    """No planner may turn it into a join: each row is asked whether it may be seen."""

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="EXISTS(%(subquery)s OFFSET 0)", **context
        )


class Among(Func):
    """Whether a whole number is one of these. `column` as a filter names it."""

    output_field = BooleanField()
    conditional = True

    def __init__(self, column: str, keys: Collection[int]) -> None:
        super().__init__(F(column))
        self.keys = tuple(keys)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        of, given = compiler.compile(self.source_expressions[0])
        sql = f"{of} IN (SELECT value FROM json_each(%s))"  # noqa: S608 - a column's name
        return sql, [*given, json.dumps(self.keys)]

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        of, given = compiler.compile(self.source_expressions[0])
        return f"{of} = ANY(%s::bigint[])", [*given, list(self.keys)]
