"""How near texts are to a question by their vectors: of rows of a table, or of texts at hand.

Whose rows may be looked at is decided by who asks: the query set that is given has the permission in it. What
is compared is bounded, and so is what it takes of memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

from django.db.models import BigIntegerField, ExpressionWrapper, F, QuerySet

from memory.retrieval.ranking import Near

from .contract import Embedder, Vectors

LOOKED_AT = 5_000
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
    (asked,) = embedder.embed([question])
    if not asked.any():
        return {}
    rows, wanted = vectors.filter(model=embedder.name), set(keys)
    made = rows.model.objects.filter(model=embedder.name)
    # Put in order by what no index has: else the database may go through everybody's, the newest first.
    order = ExpressionWrapper(F("pk") + 0, output_field=BigIntegerField())
    places = list(rows.order_by(order.desc()).values_list("pk", flat=True)[:LOOKED_AT])
    found: dict[int, float] = {}
    best: list[tuple[float, int]] = []
    for at in range(0, len(places), CHUNK):
        near = _cosines(made, places[at : at + CHUNK], asked)
        found.update((key, cosine) for key, cosine in near if key in wanted)
        close = [(cosine, key) for key, cosine in near if cosine >= embedder.floor]
        best = heapq.nlargest(NEAREST, [*best, *close])
    if missing := wanted.difference(places):
        seen = rows.filter(pk__in=missing).values_list("pk", flat=True)
        found.update(_cosines(made, list(seen), asked))
    return found | {key: cosine for cosine, key in best}


def near_of(embedder: Embedder, cosines: Mapping[int, float]) -> Near:
    by_id = {str(key): cosine for key, cosine in cosines.items()}
    return Near(by_id, embedder.floor, embedder.share)


def _cosines(made: QuerySet[Any], keys: Sequence[int], asked: Vectors) -> list[tuple[int, float]]:
    """Of rows that may be looked at."""
    rows = list(made.filter(pk__in=keys).values_list("pk", "data"))
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
