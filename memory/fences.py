"""Conditions by which rows are looked up whose keys are known, as cheap for hundreds as for one.

Of keys that are given one by one, each is compiled, split and bound for itself. Joined with what may be
seen, a planner begins with that, which are all memories of a person's stores.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import BooleanField, Expression, F, Func


def keys_as_given(keys: Collection[int]) -> str:
    """As `Among` takes them in a query that is built once (`jobs.prepared`)."""
    return _text_of(keys, connections[DEFAULT_DB_ALIAS].vendor)


class Among(Func):
    """Whether a whole number is one of these. `column` as a filter names it. `for_each`: asked of each row
    that something else has led to, and never what a planner begins with, however few they are."""

    output_field = BooleanField()
    conditional = True

    def __init__(
        self, column: str, keys: Collection[int] | Expression, *, for_each: bool = False
    ) -> None:
        super().__init__(F(column), keys if isinstance(keys, Expression) else _Keys(keys))
        self.for_each = for_each

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self._asked(compiler, "%s IN (SELECT value FROM json_each(%s))")

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self._asked(compiler, "%s = ANY(%s::bigint[])")

    def _asked(self, compiler: Any, form: str) -> Any:
        column, keys = self.source_expressions
        of, given = compiler.compile(column)
        those, keyed = compiler.compile(keys)
        # No index is of a sum.
        return form % (f"({of} + 0)" if self.for_each else of, those), [*given, *keyed]


class _Keys(Expression):
    """Of a query that is built now."""

    def __init__(self, keys: Collection[int]) -> None:
        super().__init__()
        self.keys = tuple(keys)

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [_text_of(self.keys, connection.vendor)]


def _text_of(keys: Collection[int], vendor: str) -> str:
    every = ",".join(map(str, keys))
    return f"{{{every}}}" if vendor == "postgresql" else f"[{every}]"
