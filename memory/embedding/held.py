"""The codes of an audience's vectors (`codes`), held by the process: all of them are compared with a
question, however many there are.

The table is the truth. Each use takes in what was added since; what is gone is met when it is looked up there
(`nearest`), and let go of. Nothing here is told to anybody: it says only which rows to look up.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import QuerySet

from jobs.prepared import Prepared

from .codes import BYTES, WORDS, as_words, distances, least
from .contract import Vectors

if TYPE_CHECKING:
    from memory.models import Vector

MOST = 400_000
"""Codes of one process, of 136 bytes each; of more, the audiences that were asked last, and their newest."""
BLOCK = 8_192
"""Codes that are compared, and read, at once."""
SMALLEST = 64
TAIL = 8
"""The newest rows are read again each time: if none is as it was, the table is another one."""
AGE = 3_600.0
"""Seconds until all are read anew, so that what is gone does not stay where nobody meets it."""

_Row = tuple[int, int, bytes]
"""A vector's own key, that of the row whose it is, and its code."""
_Place = tuple[str, str, str, str]
"""Database, table, model and audience."""


class Nearest(NamedTuple):
    far: Vectors
    """Planes that lie between each and the question."""
    keys: Vectors
    codes: Vectors
    """As `codes.as_words` gives them."""


class _Block:
    def __init__(self) -> None:
        numpy = import_module("numpy")  # needed by few installations
        self.count = 0
        self.keys = numpy.zeros(SMALLEST, dtype=numpy.int64)
        self.codes = numpy.zeros((WORDS, SMALLEST), dtype=numpy.uint64)

    def take(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        """As many as fit; the rest is given back."""
        numpy = import_module("numpy")  # needed by few installations
        some = rows[: BLOCK - self.count]
        count = self.count + len(some)
        room = len(self.keys)
        if count > room:
            more = min(BLOCK, max(count, 2 * room)) - room
            self.keys = numpy.pad(self.keys, (0, more))
            self.codes = numpy.pad(self.codes, ((0, 0), (0, more)))
        if some:
            self.keys[self.count : count] = [key for _pk, key, _code in some]
            self.codes[:, self.count : count] = as_words(b"".join(code for *_keys, code in some))
        self.count = count
        return rows[len(some) :]

    def having(self, keys: Collection[int]) -> list[int]:
        numpy = import_module("numpy")  # needed by few installations
        held = self.keys[: self.count]
        some: list[int] = held[numpy.isin(held, list(keys))].tolist()
        return some

    def drop(self, keys: Collection[int]) -> None:
        numpy = import_module("numpy")  # needed by few installations
        stays = ~numpy.isin(self.keys[: self.count], list(keys))
        left = int(stays.sum())
        self.keys[:left] = self.keys[: self.count][stays]
        self.codes[:, :left] = self.codes[:, : self.count][:, stays]
        self.count = left


class Audience:
    """The codes of one model's vectors that the same people may see."""

    def __init__(self, table: type[Vector], of: str, model: str, audience: str) -> None:
        """`of`: the table's column that says whose they are."""
        self._table, self._of, self._model, self._audience = table, of, model, audience
        self._using = threading.Lock()
        self._blocks: list[_Block] = []
        self._tail: dict[int, _Row] = {}
        self._read_at = 0.0

    @property
    def size(self) -> int:
        """Codes for which it has room; one without any takes some as well."""
        return max(SMALLEST, sum(len(block.keys) for block in self._blocks))

    def nearest(self, asked: Vectors, most: int) -> Nearest | None:
        """None: there are none."""
        numpy = import_module("numpy")  # needed by few installations
        with self._using:
            self._bring_up()
            blocks = [block for block in self._blocks if block.count]
            if not blocks:
                return None
            far = numpy.concatenate(
                [distances(block.codes[:, : block.count], asked) for block in blocks]
            )
            chosen = numpy.sort(least(far, min(most, len(far))))
            ends = numpy.cumsum([block.count for block in blocks])
            parts = numpy.split(chosen, chosen.searchsorted(ends[:-1]))
            places = [
                part - (end - block.count)
                for block, end, part in zip(blocks, ends, parts, strict=True)
            ]
            found = list(zip(blocks, places, strict=True))
            return Nearest(
                far[chosen],
                numpy.concatenate([block.keys[some] for block, some in found]),
                numpy.concatenate([block.codes[:, some] for block, some in found], axis=1),
            )

    def drop(self, keys: Collection[int]) -> None:
        """Those of these that have no vector. Asked here and not before, or one that is made and taken in
        meanwhile would go as well."""
        with self._using:
            having = {key for block in self._blocks for key in block.having(keys)}
            if having:
                there = self._rows().filter(**{f"{self._of}__in": having})
                having.difference_update(there.values_list(self._of, flat=True))
            for block in self._blocks if having else ():
                block.drop(having)

    def _rows(self) -> QuerySet[Any]:
        return QuerySet(self._table).filter(model=self._model, audience=self._audience)

    def _bring_up(self) -> None:
        if self._tail and time.monotonic() - self._read_at < AGE:
            new = _newer(self._table, self._of).all(
                model=self._model, audience=self._audience, first=min(self._tail)
            )
            told = [(pk, key, bytes(code)) for pk, key, code in new]
            known = [row for row in told if row[0] in self._tail]
            if known and all(row == self._tail[row[0]] for row in known):
                self._take([row for row in told if row[0] not in self._tail])
                if len(told) < BLOCK + TAIL:
                    return
        self._read(self._rows().values_list("pk", self._of, "code"))

    def _read(self, rows: QuerySet[Any, Any]) -> None:
        """All anew, the newest first; kept in the order in which they were made. Each part becomes a block at
        once, since rows as they are read take twice the room."""
        self._blocks, self._tail = [], {}
        self._read_at = time.monotonic()
        blocks: list[_Block] = []
        newest: list[_Row] = []
        older, left = rows, MOST
        while left > 0:
            part = older.order_by("-pk")[: min(BLOCK, left)]
            some = [(pk, key, bytes(code)) for pk, key, code in part]
            left -= BLOCK
            known = [row for row in some if len(row[2]) == BYTES]
            if known:
                newest = newest or known[:TAIL]
                block = _Block()
                block.take(known[::-1])
                blocks.append(block)
            if len(some) < BLOCK:
                break
            older = rows.filter(pk__lt=some[-1][0])
        # Only now: of one that broke off, nobody may think that it is all.
        self._blocks, self._tail = blocks[::-1], {row[0]: row for row in newest}

    def _take(self, rows: Sequence[_Row]) -> None:
        rows = [row for row in rows if len(row[2]) == BYTES]
        for row in rows[-TAIL:]:
            self._tail[row[0]] = row
        for gone in sorted(self._tail)[:-TAIL]:
            del self._tail[gone]
        while rows:
            if not self._blocks or self._blocks[-1].count == BLOCK:
                self._blocks.append(_Block())
            rows = self._blocks[-1].take(rows)
        while self.size > MOST:
            del self._blocks[0]


class Held:
    """The audiences whose codes a process has: those that were asked last."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._holding = threading.Lock()
        self._audiences: OrderedDict[_Place, Audience] = OrderedDict()
        self._sizes: dict[_Place, int] = {}

    @property
    def size(self) -> int:
        return sum(self._sizes.values())

    def nearest(
        self, table: type[Vector], of: str, model: str, audience: str, asked: Vectors, most: int
    ) -> Nearest | None:
        """See `Audience`."""
        place = _place_of(table, model, audience)
        with self._holding:
            its = self._audiences.setdefault(place, Audience(table, of, model, audience))
            self._audiences.move_to_end(place)
        found = its.nearest(asked, most)
        with self._holding:
            if self._audiences.get(place) is its:
                self._sizes[place] = its.size  # as much as was read meanwhile
            self._make_room(place)
        return found

    def drop(self, table: type[Vector], model: str, audience: str, keys: Collection[int]) -> None:
        with self._holding:
            its = self._audiences.get(_place_of(table, model, audience))
        if its is not None:
            its.drop(keys)

    def _make_room(self, but: _Place) -> None:
        size = self.size
        while size > self._most:
            place = next(iter(self._audiences))
            if place == but:
                return
            size -= self._sizes.pop(place, 0)
            del self._audiences[place]


@lru_cache(maxsize=8)
def _newer(table: type[Vector], of: str) -> Prepared[tuple[int, int, bytes]]:
    """Asked with each search."""
    return Prepared(
        lambda given: (
            QuerySet(table)
            .filter(model=given.model, audience=given.audience, pk__gte=given.first)
            .order_by("pk")
            .values_list("pk", of, "code")[: BLOCK + TAIL]
        ),
        binary=True,
    )


def _place_of(table: type[Vector], model: str, audience: str) -> _Place:
    """Those of another table, database or model are others."""
    database = connections[DEFAULT_DB_ALIAS].settings_dict["NAME"]
    return str(database), f"{table.__module__}.{table.__name__}", model, audience


held = Held()
"""The process's own."""


def _begin_anew() -> None:
    """What a thread of the parent had locked nobody unlocks in a forked process."""
    Held.__init__(held)


os.register_at_fork(after_in_child=_begin_anew)
