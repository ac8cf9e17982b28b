"""The codes of an audience's vectors (`codes`), held by the process: all of them are compared with a
question, however many there are.

The table is the truth. Each use takes in what was added since; what is gone is met when it is looked up there
(`nearest`), and let go of. Nothing here is told to anybody: it says only which rows to look up.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from .codes import BYTES, WORDS, as_words, distances
from .contract import Vectors

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

    def drop(self, keys: Collection[int]) -> None:
        numpy = import_module("numpy")  # needed by few installations
        stays = ~numpy.isin(self.keys[: self.count], list(keys))
        left = int(stays.sum())
        self.keys[:left] = self.keys[: self.count][stays]
        self.codes[:, :left] = self.codes[:, : self.count][:, stays]
        self.count = left


class Audience:
    """The codes of one model's vectors that the same people may see."""

    def __init__(self) -> None:
        self._using = threading.Lock()
        self._blocks: list[_Block] = []
        self._tail: dict[int, _Row] = {}
        self._read_at = 0.0

    @property
    def size(self) -> int:
        return sum(len(block.keys) for block in self._blocks)

    def nearest(self, rows: QuerySet[Any], of: str, asked: Vectors, most: int) -> list[Vectors]:
        """Distances and keys of the nearest. `rows`: all vectors of this audience; `of`: the column that says
        whose they are."""
        numpy = import_module("numpy")  # needed by few installations
        with self._using:
            self._bring_up(rows.values_list("pk", of, "code"))
            blocks = [block for block in self._blocks if block.count]
            if not blocks:
                return []
            far = numpy.concatenate(
                [distances(block.codes[:, : block.count], asked) for block in blocks]
            )
            keys = numpy.concatenate([block.keys[: block.count] for block in blocks])
        if len(far) > most:
            chosen = numpy.argpartition(far, most)[:most]
            far, keys = far[chosen], keys[chosen]
        return [far, keys]

    def drop(self, keys: Collection[int]) -> None:
        with self._using:
            for block in self._blocks:
                block.drop(keys)

    def _bring_up(self, rows: QuerySet[Any, Any]) -> None:
        if self._tail and time.monotonic() - self._read_at < AGE:
            new = rows.filter(pk__gte=min(self._tail)).order_by("pk")
            told = [(pk, key, bytes(code)) for pk, key, code in new[: BLOCK + TAIL]]
            known = [row for row in told if row[0] in self._tail]
            if known and all(row == self._tail[row[0]] for row in known):
                self._take([row for row in told if row[0] not in self._tail])
                if len(told) < BLOCK + TAIL:
                    return
        self._read(rows)

    def _read(self, rows: QuerySet[Any, Any]) -> None:
        """All anew, the newest first; kept in the order in which they were made."""
        self._blocks, self._tail = [], {}
        self._read_at = time.monotonic()
        parts: list[list[_Row]] = []
        below, left = None, MOST
        while left > 0:
            older = rows if below is None else rows.filter(pk__lt=below)
            part = older.order_by("-pk")[: min(BLOCK, left)]
            parts.append([(pk, key, bytes(code)) for pk, key, code in part])
            left -= BLOCK
            if len(parts[-1]) < BLOCK:
                break
            below = parts[-1][-1][0]
        for some in reversed(parts):
            self._take(some[::-1])

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


_held: OrderedDict[tuple[str, str, str, str], Audience] = OrderedDict()
_holding = threading.Lock()


def held(rows: QuerySet[Any], model: str, audience: str) -> Audience:
    """Of this process; that of another table, database or model is another one."""
    database = connections[rows.db].settings_dict["NAME"]
    key = (str(database), f"{rows.model.__module__}.{rows.model.__name__}", model, audience)
    with _holding:
        found = _held.setdefault(key, Audience())
        _held.move_to_end(key)
        size = sum(each.size for each in _held.values())
        for other in _oldest(key):
            if size <= MOST:
                break
            size -= _held.pop(other).size
        return found


def _oldest(but: tuple[str, str, str, str]) -> Iterable[tuple[str, str, str, str]]:
    return [key for key in _held if key != but]
