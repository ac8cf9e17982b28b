"""Queries and changes whose SQL is built once, for paths on which building it costs more than asking.

Which rows is still said by a queryset, so a rule about who may see what stands in one place. For a
query that is asked now and then, use the queryset itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import inf
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, QuerySet
from django.db.models.query import get_related_populators
from django.db.models.sql import UpdateQuery
from django.db.transaction import TransactionManagementError

from reading.digits import LARGEST

Row = TypeVar("Row")


class _Value(Expression):
    """Stands in the SQL where a value will be given."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", (self,)


class Given:
    """Each attribute stands for the value of that name, given when the query is asked."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Value(name)


Converter = tuple[int, Any, Callable[[Any, Any, Any], Any]]
"""The place of a column that is not used as the database gives it, its expression, what makes of it."""


_KEPT = "prepared_converters"
"""What a connection's converters are kept under, by query: with it, so that they end with it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Built:
    sql: str
    parameters: Sequence[Any]
    locks: bool
    columns: Sequence[Any]
    make: Callable[[Sequence[Any]], Any]


class Prepared(Generic[Row]):
    """`Prepared(lambda given: Thing.objects.filter(uid=given.uid)).first(uid="…")`.

    What is given is compared as it is: numbers, texts, moments, days; never None, a list or a model. It is
    not known when the query is built, so the function must not decide anything by it. Rows
    are those of the queryset: models (also annotated, or with `select_related`), or tuples for
    `values_list`. It may be sliced, and may lock what it finds, in a transaction.

    `binary`: for tuples of whole numbers, texts, bytes and moments, of which many are bytes or moments; these
    come cheaper over a line.
    """

    def __init__(
        self, build: Callable[[Given], QuerySet[Any, Row]], *, binary: bool = False
    ) -> None:
        self._build = build
        self._binary = binary
        self._built: dict[str, _Built] = {}

    def all(self, **given: Any) -> list[Row]:
        here = connections[DEFAULT_DB_ALIAS]
        built = self._for_this_database(here)
        # Not every database has another form.
        make = getattr(here, "binary_cursor", here.cursor) if self._binary else here.cursor
        with make() as cursor:
            cursor.execute(built.sql, _filled(built.parameters, given, here))
            rows = cursor.fetchall()
        return _made(built, rows, here)

    def first(self, **given: Any) -> Row | None:
        """The first in the order of the queryset."""
        here = connections[DEFAULT_DB_ALIAS]
        built = self._for_this_database(here)
        with here.cursor() as cursor:
            cursor.execute(built.sql, _filled(built.parameters, given, here))
            row = cursor.fetchone()
        return _made(built, [row], here)[0] if row is not None else None

    def exists(self, **given: Any) -> bool:
        here = connections[DEFAULT_DB_ALIAS]
        built = self._for_this_database(here)
        with here.cursor() as cursor:
            cursor.execute(built.sql, _filled(built.parameters, given, here))
            return cursor.fetchone() is not None

    def _for_this_database(self, here: BaseDatabaseWrapper) -> _Built:
        built = self._built.get(here.vendor)
        if built is None:
            built = self._built[here.vendor] = _built(self._build(Given()), here)
        if built.locks and not here.in_atomic_block:
            raise TransactionManagementError("A query that locks rows needs a transaction.")
        return built


class PreparedUpdate:
    """`PreparedUpdate(lambda given: Thing.objects.filter(uid=given.uid), lambda given: {"seen": given.at})`.

    Changes columns of the rows themselves, as `QuerySet.update` does; what is given as for `Prepared`, but
    that a column may be set to None or to a Decimal, and one of JSON to its text.
    """

    def __init__(
        self,
        build: Callable[[Given], QuerySet[Any, Any]],
        changes: Callable[[Given], Mapping[str, Any]],
    ) -> None:
        self._build = build
        self._changes = changes
        self._built: dict[str, tuple[str, Sequence[Any]]] = {}

    def run(self, **given: Any) -> int:
        """How many rows there were."""
        here = connections[DEFAULT_DB_ALIAS]
        built = self._built.get(here.vendor)
        if built is None:
            query: Any = self._build(Given()).query.chain(UpdateQuery)
            query.add_update_values(self._changes(Given()))
            built = self._built[here.vendor] = _written_out(
                *query.get_compiler(connection=here).as_sql()
            )
        sql, parameters = built
        with here.cursor() as cursor:
            cursor.execute(sql, _filled(parameters, given, here))
            return int(cursor.rowcount)


_MARK = re.compile("%[s%]")
_PLAIN = re.compile(r"[\w.:-]*", re.ASCII)


def _written_out(sql: str, parameters: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """With plain words that are always the same in the statement itself. As values they would have SQLite
    compile it anew at each execution, wherever one may decide whether an index with a condition fits."""
    rest: list[Any] = []
    values = iter(parameters)

    def written(mark: re.Match[str]) -> str:
        if mark[0] == "%%":
            return mark[0]
        value = next(values)
        if isinstance(value, str) and _PLAIN.fullmatch(value):
            return f"'{str.__str__(value)}'"  # what it is, also of a member of an enumeration
        rest.append(value)
        return mark[0]

    return _MARK.sub(written, sql), rest


def _built(queryset: QuerySet[Any, Any], here: BaseDatabaseWrapper) -> _Built:
    compiler = queryset.query.get_compiler(connection=here)
    sql, parameters = _written_out(*compiler.as_sql())
    # Of a list of annotations alone there are no fields.
    tuples = queryset.query.values_select or compiler.klass_info is None
    return _Built(
        sql=sql,
        parameters=parameters,
        locks=queryset.query.select_for_update,
        columns=[expression for expression, _sql, _alias in compiler.select],
        make=tuple if tuples else _maker(compiler, queryset.db),
    )


def _maker(compiler: Any, alias: str) -> Callable[[Sequence[Any]], Any]:
    about = compiler.klass_info
    model, fields = about["model"], about["select_fields"]
    start, end = fields[0], fields[-1] + 1
    names = [column.target.attname for column, _sql, _alias in compiler.select[start:end]]
    related = get_related_populators(about, compiler.select, alias)  # type: ignore[call-arg]
    annotated = compiler.annotation_col_map

    def make(row: Sequence[Any]) -> Any:
        made = model.from_db(alias, names, row[start:end])
        for each in related:
            each.populate(row, made)
        for name, place in annotated.items():
            setattr(made, name, row[place])
        return made

    return make


def _made(built: _Built, rows: Sequence[Sequence[Any]], here: BaseDatabaseWrapper) -> list[Any]:
    if not rows:
        return []
    kept: dict[_Built, Sequence[Converter]] = here.__dict__.setdefault(_KEPT, {})
    converters = kept.get(built)
    if converters is None:
        converters = kept[built] = _converters(built.columns, here)
    made = []
    for row in rows:
        values = list(row)
        for place, column, function in converters:
            values[place] = function(values[place], column, here)
        made.append(built.make(values))
    return made


def _converters(columns: Sequence[Any], here: BaseDatabaseWrapper) -> list[Converter]:
    return [
        (place, column, function)
        for place, column in enumerate(columns)
        for function in (*here.ops.get_db_converters(column), *column.get_db_converters(here))
    ]


def _filled(
    parameters: Sequence[Any], given: dict[str, Any], here: BaseDatabaseWrapper
) -> list[Any]:
    return [
        _adapted(given[each.name], here) if isinstance(each, _Value) else each
        for each in parameters
    ]


def _adapted(value: Any, here: BaseDatabaseWrapper) -> Any:
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        # No column holds it, and not every database may be asked for it.
        return inf if value > 0 else -inf
    if isinstance(value, datetime):
        return here.ops.adapt_datetimefield_value(value)
    if isinstance(value, date):
        return here.ops.adapt_datefield_value(value)
    return value
