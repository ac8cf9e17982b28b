"""How near texts are to a question by their vectors: of rows of a table, or of texts at hand.

Rows are looked up by their audience, so that those of others are not met, and narrowed by the query set that
is given, which has the permission in it, before anybody hears of them. What is compared is bounded, and so is
what it takes of memory and time, however many there are.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

from django.db.models import QuerySet

from memory.retrieval.ranking import Near

from .contract import Embedder, Scale, Vectors

LOOKED_AT = 3_000
"""Vectors that are compared with a question: those of the newest rows, and those asked for by key."""
BYTES = 6 * 1024 * 1024
"""That they take: of long ones it are fewer."""
NEAREST = 100
"""So many of them are candidates, before they are narrowed."""
DIGITS = 4
"""Of a cosine: beyond them it depends on the machine."""


def nearest(
    asked: Vectors,
    scale: Scale,
    seen: QuerySet[Any],
    *,
    model: str,
    audiences: Collection[str],
    keys: Collection[int],
) -> dict[int, float]:
    """Cosines by primary key, of rows of `seen` alone: of the nearest among the newest that these audiences
    have, and of all that have `keys`."""
    if not asked.any():
        return {}
    every = seen.model.objects.filter(model=model)
    most = max(1, min(LOOKED_AT, BYTES // asked.nbytes))
    newest: list[tuple[int, bytes]] = []
    for audience in sorted(audiences):
        of_these = every.filter(audience=audience).order_by("-pk")
        newest += of_these.values_list("pk", "data")[:most]
    if len(audiences) > 1:
        newest = heapq.nlargest(most, newest, key=lambda row: row[0])
    asked_for = set(keys)
    cosines = _chosen(newest, asked, scale.floor, asked_for)
    wanted = asked_for.difference(key for key, _data in newest)
    if wanted:
        rows = list(every.filter(pk__in=wanted).values_list("pk", "data"))
        cosines |= _chosen(rows, asked, scale.floor, wanted)
    there = seen.filter(model=model, pk__in=cosines).values_list("pk", flat=True)
    return {key: cosines[key] for key in there}


def near_of(embedder: Embedder, scale: Scale, cosines: Mapping[int, float]) -> Near:
    by_id = {str(key): cosine for key, cosine in cosines.items()}
    return Near(by_id, scale.floor, embedder.share)


def _chosen(
    rows: Sequence[tuple[int, bytes]], asked: Vectors, floor: float, wanted: Collection[int]
) -> dict[int, float]:
    """Cosines of the nearest of rows, and of those that are wanted."""
    rows = [row for row in rows if len(row[1]) == asked.nbytes]
    if not rows:
        return {}
    numpy = import_module("numpy")  # needed by few installations
    every = numpy.frombuffer(b"".join(data for _key, data in rows), dtype=numpy.float32)
    cosines = numpy.round(every.reshape(len(rows), -1) @ asked, DIGITS)
    close = numpy.flatnonzero(cosines >= floor)
    # Of the same cosine the first, which are the newest.
    best = close[numpy.argsort(-cosines[close], kind="stable")][:NEAREST].tolist()
    places = [*best, *(place for place, (key, _data) in enumerate(rows) if key in wanted)]
    return {rows[place][0]: round(float(cosines[place]), DIGITS) for place in places}


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
