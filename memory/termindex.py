"""The database's index of what rows are found by: which rows have which terms, of some audiences.

A table that has it has the columns `terms` and `audience` (`memory.retrieval.words`). Every term stands in
the index behind its row's audience: looking one up meets nothing of other people, and costs what it finds,
however many there are. How finds are ordered is `memory.retrieval`'s part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db import connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper

CANDIDATES = 200
"""Rows that are compared with a question."""
FEW = 500
"""A term that more rows have is common: it finds rows together with another, or where nothing else does."""
COMMON = 3
"""So many common terms of a question are looked up in pairs, the rarest of them."""
OF_A_PAIR = 60
ORDERED = 2_000
BESIDE = 8_000
"""On PostgreSQL they are looked for among so many rows of the rarer one and of the other, the newest."""

Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Having:
    """Which rows have a term."""

    keys: list[int]
    """All of them; none, where they are more than a few."""
    is_common: bool
    reach: int
    """How far among the rows the first of them go: the farther, the rarer the term."""


class _Asked(Protocol):
    """One database's way to ask its index. `places`: audiences, as they stand before a term."""

    def having_each(
        self, terms: Sequence[str], places: Sequence[str], few: int
    ) -> list[_Having]: ...

    def having_both(self, pairs: Pairs, places: Sequence[str]) -> list[int]:
        """The newest rows of each pair, with those of the other pairs behind them."""

    def having_all(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        """The newest rows."""


@dataclass(frozen=True, slots=True)
class TermIndexOf:
    """The index of one table."""

    table: str
    few: int = FEW
    most: int = CANDIDATES

    def candidates(
        self,
        model: type[models.Model],
        terms: Sequence[str],
        audiences: Collection[str],
        *,
        times: int = 1,
    ) -> list[int]:
        """Keys of rows that have some of the terms, first those that have most of the rare ones, then the
        newest; at most `times` as many as are compared with a question."""
        places, most = sorted(audiences), times * self.most
        if not places or not terms:
            return []
        index = self._asked(model)
        found = dict(zip(terms, index.having_each(terms, places, self.few), strict=True))
        scores: dict[int, float] = {}
        for having in found.values():
            if having.keys:
                weight = math.log(2 + self.few / len(having.keys))
                for key in having.keys:
                    scores[key] = scores.get(key, 0.0) + weight
        common = [term for term in found if found[term].is_common]
        common.sort(key=lambda term: -found[term].reach)
        weight = 2 * math.log(2)
        for key in index.having_both(list(itertools.combinations(common[:COMMON], 2)), places):
            scores[key] = scores.get(key, 0.0) + weight
        if len(scores) < most and common:
            for key in index.having_all(common[:1], places, most):
                scores.setdefault(key, 0.0)
        return sorted(scores, key=lambda key: (-scores[key], -key))[:most]

    def having(
        self,
        model: type[models.Model],
        terms: Sequence[str],
        audiences: Collection[str],
        most: int,
    ) -> list[int]:
        """Keys of the newest rows that have all of the terms."""
        if not audiences or not terms:
            return []
        return self._asked(model).having_all(terms, sorted(audiences), most)

    def _asked(self, model: type[models.Model]) -> _Asked:
        connection = connections[router.db_for_read(model)]
        of = _OnPostgreSQL if connection.vendor == "postgresql" else _OnSQLite
        return of(connection, index_of(self.table, connection.vendor))

    def statements(self, vendor: str, *, back: bool = False) -> list[str]:
        """What makes it, for a migration, or takes it away again."""
        of = _OnPostgreSQL if vendor == "postgresql" else _OnSQLite
        index = index_of(self.table, vendor)
        return of.taken_away(self.table, index) if back else of.made(self.table, index)


def index_of(table: str, vendor: str) -> str:
    return f"{table}_postings" if vendor == "postgresql" else f"{table}_fts"


@dataclass(frozen=True, slots=True)
class _OnSQLite:
    """A full-text index without texts: what stands before a term makes it another term."""

    connection: BaseDatabaseWrapper
    index: str

    def having_each(self, terms: Sequence[str], places: Sequence[str], few: int) -> list[_Having]:
        # Keys that nobody will look at are not handed over: most terms of a question are common.
        kept = f"CASE WHEN count(*) <= {few} THEN group_concat(id) END"
        part = (
            f"SELECT %s, {kept}, count(*), max(id) "  # noqa: S608
            f"FROM (SELECT rowid AS id FROM {self.index} WHERE {self.index} MATCH %s LIMIT {few + 1})"
        )
        given: list[Any] = []
        for number, term in enumerate(terms):
            given += [number, _matching([[f"{place}{term}" for place in places]], " OR ")]
        rows = sorted(self._rows(" UNION ALL ".join([part] * len(terms)), given))
        return [
            _Having(list(map(int, keys.split(","))) if keys else [], count > few, last or 0)
            for _number, keys, count, last in rows
        ]

    def having_both(self, pairs: Pairs, places: Sequence[str]) -> list[int]:
        if not pairs:
            return []
        part = f"SELECT id FROM ({self._newest(OF_A_PAIR)})"  # noqa: S608
        given = [_all_of(pair, places) for pair in pairs]
        return [key for (key,) in self._rows(" UNION ALL ".join([part] * len(pairs)), given)]

    def having_all(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        return [key for (key,) in self._rows(self._newest(most), [_all_of(terms, places)])]

    def _newest(self, most: int) -> str:
        where = f"{self.index} MATCH %s ORDER BY rowid DESC LIMIT {most}"
        return f"SELECT rowid AS id FROM {self.index} WHERE {where}"  # noqa: S608

    def _rows(self, sql: str, given: Sequence[Any]) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, given)
            return list(cursor.fetchall())

    @staticmethod
    def made(table: str, index: str) -> list[str]:
        new, old = _behind_audience("new."), _behind_audience("old.")
        take = f"INSERT INTO {index} (rowid, terms) VALUES (new.id, {new});"  # noqa: S608
        leave = f"INSERT INTO {index} ({index}, rowid, terms) VALUES ('delete', old.id, {old});"  # noqa: S608
        # Its tables are old: what was a mark when they were made may be a letter by now.
        signs = "unicode61 remove_diacritics 0 categories 'L* N* Co M*'"
        tokens = f'tokenize="{signs}", detail=none'
        changed = f"AFTER UPDATE OF terms ON {table} WHEN old.terms <> new.terms"
        return [
            f"CREATE VIRTUAL TABLE {index} USING fts5(terms, content='', {tokens})",
            f"CREATE TRIGGER {table}_added AFTER INSERT ON {table} BEGIN {take} END",
            f"CREATE TRIGGER {table}_removed AFTER DELETE ON {table} BEGIN {leave} END",
            f"CREATE TRIGGER {table}_changed {changed} BEGIN {leave} {take} END",
        ]

    @staticmethod
    def taken_away(table: str, index: str) -> list[str]:
        triggers = [f"DROP TRIGGER {table}_{name}" for name in ("added", "removed", "changed")]
        return [*triggers, f"DROP TABLE {index}"]


@dataclass(frozen=True, slots=True)
class _OnPostgreSQL:
    """A table of terms and rows in the order of its key: an inverted index (GIN) tells no order, so that what
    many rows have would be fetched whole before the newest of it are known (ADR 74)."""

    connection: BaseDatabaseWrapper
    index: str

    def having_each(self, terms: Sequence[str], places: Sequence[str], few: int) -> list[_Having]:
        wanted = [
            (number, f"{place}{term}") for number, term in enumerate(terms) for place in places
        ]
        sql = f"""
            SELECT number, CASE WHEN count(*) <= {few} THEN array_agg(id) END, count(*), max(id)
            FROM unnest(%s::int[], %s::text[]) AS wanted (number, behind), LATERAL (
                SELECT id FROM {self.index} WHERE term = behind ORDER BY id LIMIT {few + 1}
            ) AS those
            GROUP BY number
        """  # noqa: S608
        numbers, behind = zip(*wanted, strict=True)
        rows = {row[0]: row for row in self._rows(sql, [list(numbers), list(behind)])}
        return [
            _Having(row[1] or [], row[2] > few, row[3])
            if (row := rows.get(number))
            else _Having([], is_common=False, reach=0)
            for number in range(len(terms))
        ]

    def having_both(self, pairs: Pairs, places: Sequence[str]) -> list[int]:
        if not pairs:
            return []
        # Two short lists side by side: a look into the index for each row of the one costs twice as much.
        sql = f"""
            SELECT id FROM unnest(%s::text[], %s::text[]) AS wanted (rarer, other),
            LATERAL (
                SELECT id
                FROM (
                    (SELECT id FROM {self.index} WHERE term = rarer ORDER BY id DESC LIMIT {ORDERED})
                    INTERSECT
                    (SELECT id FROM {self.index} WHERE term = other ORDER BY id DESC LIMIT {BESIDE})
                ) AS both_of
                ORDER BY id DESC
                LIMIT {OF_A_PAIR}
            ) AS newest
        """  # noqa: S608
        wanted = [
            (f"{place}{rarer}", f"{place}{other}") for rarer, other in pairs for place in places
        ]
        return [key for (key,) in self._rows(sql, list(map(list, zip(*wanted, strict=True))))]

    def having_all(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        parts, given = [], []
        for place in places:
            first, *others = [f"{place}{term}" for term in terms]
            joined = "".join(
                f" JOIN {self.index} AS p{number} ON p{number}.id = p.id AND p{number}.term = %s"
                for number in range(len(others))
            )
            part = f"SELECT p.id FROM {self.index} AS p{joined} WHERE p.term = %s"  # noqa: S608
            parts.append(f"({part} ORDER BY p.id DESC LIMIT {most})")
            given += [*others, first]
        every = " UNION ALL ".join(parts)
        sql = f"SELECT id FROM ({every}) AS those ORDER BY id DESC LIMIT {most}"  # noqa: S608
        return [key for (key,) in self._rows(sql, given)]

    def _rows(self, sql: str, given: Sequence[Any]) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, given)
            return list(cursor.fetchall())

    @staticmethod
    def made(table: str, index: str) -> list[str]:
        key = 'term text COLLATE "C" NOT NULL, id bigint NOT NULL, PRIMARY KEY (term, id)'
        new, old = _behind_audience("new."), _behind_audience("old.")
        put = f"""
            CREATE FUNCTION {index}_put() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF TG_OP <> 'INSERT' THEN
                    DELETE FROM {index} WHERE id = old.id AND term = ANY (string_to_array({old}, ' '));
                END IF;
                IF TG_OP <> 'DELETE' THEN
                    INSERT INTO {index}
                    SELECT DISTINCT unnest(string_to_array({new}, ' ')), new.id ON CONFLICT DO NOTHING;
                END IF;
                RETURN NULL;
            END $$
        """  # noqa: S608
        emptied = f"""
            CREATE FUNCTION {index}_empty() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                TRUNCATE {index};
                RETURN NULL;
            END $$
        """
        each = f"FOR EACH ROW EXECUTE FUNCTION {index}_put()"
        differs = "WHEN (old.terms <> new.terms OR old.audience <> new.audience)"
        changed = f"FOR EACH ROW {differs} EXECUTE FUNCTION {index}_put()"
        return [
            f"CREATE TABLE {index} ({key})",
            put,
            emptied,
            f"CREATE TRIGGER {table}_indexed AFTER INSERT OR DELETE ON {table} {each}",
            f"CREATE TRIGGER {table}_changed AFTER UPDATE OF terms, audience ON {table} {changed}",
            f"CREATE TRIGGER {table}_emptied AFTER TRUNCATE ON {table} EXECUTE FUNCTION {index}_empty()",
        ]

    @staticmethod
    def taken_away(table: str, index: str) -> list[str]:
        triggers = [
            f"DROP TRIGGER {table}_{name} ON {table}" for name in ("indexed", "changed", "emptied")
        ]
        return [
            *triggers,
            f"DROP FUNCTION {index}_put",
            f"DROP FUNCTION {index}_empty",
            f"DROP TABLE {index}",
        ]


def _all_of(terms: Sequence[str], places: Sequence[str]) -> str:
    """Rows of one of the places that have all of the terms."""
    return _matching([[f"{place}{term}" for term in terms] for place in places], " AND ")


def _matching(groups: Sequence[Sequence[str]], between: str) -> str:
    quoted = (between.join(f'"{term}"' for term in group) for group in groups)
    return " OR ".join(f"({group})" for group in quoted)


def _behind_audience(row: str) -> str:
    """A row's terms, each behind its audience."""
    return f"{row}audience || replace({row}terms, ' ', ' ' || {row}audience)"
