"""How near texts are to a question by their vectors: of rows of a table, or of texts at hand.

Whose rows may be looked at is decided by who asks: the query set that is given has the permission in it. What
is compared is bounded, and so is what it takes of memory.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from django.db.models import QuerySet

from memory.retrieval.ranking import Near

from .contract import Embedder, Vectors

LOOKED_AT = 20_000
"""Vectors that are compared with a question: those of the newest rows, and those asked for by key."""
NEAREST = 50
"""So many of them are kept as candidates."""
CHUNK = 2_000
DIGITS = 4
"""Of a cosine: beyond them it depends on the machine."""


def nearest(
    embedder: Embedder, vectors: QuerySet[Any], question: str, keys: Collection[int]
) -> dict[int, float]:
    """Cosines by primary key: of the nearest among the newest of `vectors`, and of all that have `keys`."""
    rows = vectors.filter(model=embedder.name).order_by("-pk").values_list("pk", "data")
    (asked,) = embedder.embed([question])
    if not asked.any():
        return {}
    wanted = set(keys)
    found: dict[int, float] = {}
    best: list[tuple[float, int]] = []
    for some in _chunks(rows[:LOOKED_AT].iterator(chunk_size=CHUNK)):
        near = _cosines(some, asked)
        found.update((key, cosine) for key, cosine in near if key in wanted)
        close = [(cosine, key) for key, cosine in near if cosine >= embedder.floor]
        best = heapq.nlargest(NEAREST, [*best, *close])
    if missing := wanted - found.keys():
        found.update(_cosines(list(rows.filter(pk__in=missing)), asked))
    return found | {key: cosine for cosine, key in best}


def near_of(embedder: Embedder, cosines: Mapping[int, float]) -> Near:
    by_id = {str(key): cosine for key, cosine in cosines.items()}
    return Near(by_id, embedder.floor, embedder.share)


def _chunks(rows: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    while some := list(itertools.islice(rows, CHUNK)):
        yield some


def _cosines(rows: Sequence[tuple[int, bytes]], asked: Vectors) -> list[tuple[int, float]]:
    if not rows:
        return []
    numpy = import_module("numpy")  # needed by few installations
    every = numpy.frombuffer(b"".join(data for _key, data in rows), dtype=numpy.float32)
    cosines = every.reshape(len(rows), -1) @ asked
    return [
        (key, round(cosine, DIGITS))
        for (key, _data), cosine in zip(rows, cosines.tolist(), strict=True)
    ]


def as_blob(vector: Vectors) -> bytes:
    made: bytes = vector.astype("<f4").tobytes()
    return made


class EmbeddedTexts:
    """Texts that stand in no table, such as the turns of a dialogue, with their vectors."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self._embedder = embedder
        every = list(dict.fromkeys(texts))
        place = {text: number for number, text in enumerate(every)}
        self._rows = [place[text] for text in texts]
        self._vectors = embedder.embed(every)

    def near(self, question: str) -> list[float]:
        """Cosines, in their order."""
        (asked,) = self._embedder.embed([question])
        cosines = (self._vectors @ asked).tolist()
        return [round(cosines[row], DIGITS) for row in self._rows]
