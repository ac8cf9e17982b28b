"""The database's index of what rows are found by: which rows have which terms, of some audiences.

A table that has it has the columns `terms` and `audience` (`memory.retrieval.words`). Every term stands in
the index behind its row's audience: looking one up meets nothing of other people, and costs what it finds,
however many there are. How finds are ordered is `memory.retrieval`'s part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections, models, router

CANDIDATES = 200
"""Rows that are compared with a question."""
FEW = 500
"""A term that more rows have is common: it finds rows together with another, or where nothing else does."""
COMMON = 4
"""So many common terms of a question are looked up in pairs."""
OF_A_PAIR = 60
ORDERED = 2_000
"""On PostgreSQL so many rows are put in order for that: its index tells no order."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    either: list[list[str]]
    """Rows that have all terms of any of these."""
    most: int
    among: int | None = None
    """Of so many rows on PostgreSQL; None: of all."""


@dataclass(frozen=True, slots=True)
class TermIndexOf:
    """The index of one table."""

    table: str

    @property
    def fts(self) -> str:
        return f"{self.table}_fts"

    # --- finding ------------------------------------------------------------------------------------

    def candidates(
        self, model: type[models.Model], terms: Sequence[str], audiences: Collection[str]
    ) -> list[int]:
        """Keys of rows that have some of the terms, first those that have most of the rare ones, then the
        newest; at most CANDIDATES."""
        ask = self._asking(model)
        places = sorted(audiences)
        if not places or not terms:
            return []
        found: dict[int, list[int]] = {number: [] for number in range(len(terms))}
        for number, key in ask(
            [_Wanted(_behind([term], places), FEW + 1, FEW + 1) for term in terms]
        ):
            found[number].append(key)
        scores: dict[int, float] = {}
        common = [terms[number] for number in found if len(found[number]) > FEW]
        for keys in found.values():
            if 0 < len(keys) <= FEW:
                weight = math.log(2 + FEW / len(keys))
                for key in keys:
                    scores[key] = scores.get(key, 0.0) + weight
        pairs = list(itertools.combinations(common[:COMMON], 2))
        for _number, key in ask(
            [_Wanted(_behind(pair, places), OF_A_PAIR, ORDERED) for pair in pairs]
        ):
            scores[key] = scores.get(key, 0.0) + 2 * math.log(2)
        if len(scores) < CANDIDATES and common:
            for _number, key in ask([_Wanted(_behind(common[:1], places), CANDIDATES)]):
                scores.setdefault(key, 0.0)
        return sorted(scores, key=lambda key: (-scores[key], -key))[:CANDIDATES]

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
        ask = self._asking(model)
        return [key for _number, key in ask([_Wanted(_behind(terms, sorted(audiences)), most)])]

    def _asking(
        self, model: type[models.Model]
    ) -> Callable[[Sequence[_Wanted]], Iterator[tuple[int, int]]]:
        connection = connections[router.db_for_read(model)]
        one = self._on_postgresql if connection.vendor == "postgresql" else self._on_sqlite

        def ask(wanted: Sequence[_Wanted]) -> Iterator[tuple[int, int]]:
            """Of each, its number and the keys that it finds, in one statement."""
            if not wanted:
                return
            parts, values = [], []
            for number, each in enumerate(wanted):
                sql, given = one(each)
                parts.append(f"SELECT {number}, id FROM ({sql}) AS part{number}")  # noqa: S608
                values += given
            with connection.cursor() as cursor:
                cursor.execute(" UNION ALL ".join(parts), values)
                yield from cursor.fetchall()

        return ask

    def _on_sqlite(self, wanted: _Wanted) -> tuple[str, list[Any]]:
        match = " OR ".join(
            "(" + " AND ".join(f'"{term}"' for term in every) + ")" for every in wanted.either
        )
        sql = f"SELECT rowid AS id FROM {self.fts} WHERE {self.fts} MATCH %s"  # noqa: S608
        return f"{sql} ORDER BY rowid DESC LIMIT {wanted.most}", [match]

    def _on_postgresql(self, wanted: _Wanted) -> tuple[str, list[Any]]:
        """The limit inside keeps the index in use: without it the rows would be gone through backwards."""
        if all(len(every) == 1 for every in wanted.either):
            where, values = f"{ON_POSTGRESQL} && %s", [[term for (term,) in wanted.either]]
        else:
            where = " OR ".join(f"{ON_POSTGRESQL} @> %s" for _ in wanted.either)
            values = wanted.either
        some = f"LIMIT {wanted.among}" if wanted.among is not None else "OFFSET 0"
        those = f"SELECT id FROM {self.table} WHERE {where} {some}"  # noqa: S608
        sql = f"SELECT id FROM ({those}) AS those ORDER BY id DESC LIMIT {wanted.most}"  # noqa: S608
        return sql, list(values)

    # --- making it ----------------------------------------------------------------------------------

    def statements(self, vendor: str, *, back: bool = False) -> list[str]:
        """What makes it, for a migration, or takes it away again."""
        if back:
            return self._back(vendor)
        if vendor == "postgresql":
            index = f"CREATE INDEX {self.fts} ON {self.table} USING gin ({ON_POSTGRESQL})"
            # Without `fastupdate`: else each search goes through what was written of late.
            return [FUNCTION, f"{index} WITH (fastupdate = off)"]
        new, old = _behind_audience("new."), _behind_audience("old.")
        take = f"INSERT INTO {self.fts} (rowid, terms) VALUES (new.id, {new});"  # noqa: S608
        leave = (
            f"INSERT INTO {self.fts} ({self.fts}, rowid, terms) VALUES ('delete', old.id, {old});"  # noqa: S608
        )
        tokens = 'tokenize="unicode61 remove_diacritics 0", detail=none'
        changed = f"AFTER UPDATE OF terms ON {self.table} WHEN old.terms <> new.terms"
        return [
            f"CREATE VIRTUAL TABLE {self.fts} USING fts5(terms, content='', {tokens})",
            f"CREATE TRIGGER {self.table}_added AFTER INSERT ON {self.table} BEGIN {take} END",
            f"CREATE TRIGGER {self.table}_removed AFTER DELETE ON {self.table} BEGIN {leave} END",
            f"CREATE TRIGGER {self.table}_changed {changed} BEGIN {leave} {take} END",
        ]

    def _back(self, vendor: str) -> list[str]:
        if vendor == "postgresql":
            return [f"DROP INDEX {self.fts}"]
        triggers = [f"DROP TRIGGER {self.table}_{name}" for name in ("added", "removed", "changed")]
        return [*triggers, f"DROP TABLE {self.fts}"]


def _behind(terms: Sequence[str], audiences: Sequence[str]) -> list[list[str]]:
    return [[f"{place}{term}" for term in terms] for place in audiences]


def _behind_audience(row: str) -> str:
    """A row's terms, each behind its audience."""
    return f"{row}audience || replace({row}terms, ' ', ' ' || {row}audience)"


ON_POSTGRESQL = "agentsite_terms(audience, terms)"
FUNCTION = f"""
CREATE OR REPLACE FUNCTION agentsite_terms(audience text, terms text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 2000
AS $$ BEGIN RETURN string_to_array({_behind_audience("")}, ' '); END $$
"""
"""Not in SQL, which would be drawn into statements with its cost: the planner has to know that asking each
row is dear, and look into the index."""
