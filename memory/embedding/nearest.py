"""How near texts are to a question by their vectors: of rows of a table, or of texts at hand.

All vectors of the question's audiences are compared by their codes (`held`), those that are nearest by these
once more by how far the question lies from each plane. Who is nearest by that is looked up by the query that
is given, which has the permission in it, and compared exactly: only of them anybody hears.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import QuerySet

from memory.fences import Among
from memory.retrieval.ranking import Near

from .codes import as_words, code_at, code_of, heights_of, likeness
from .contract import KEPT, WIDTH, Embedder, Scale, Vectors
from .held import held

if TYPE_CHECKING:
    from memory.models import Vector

LOOKED_UP = 200
"""Vectors that are compared exactly, beside those of rows that words found."""
WEIGHED = 4
"""Times as many are compared once more to find these."""
BYTES = 1_250_000
"""That they take: of long ones it are fewer."""
DEEPER = (1, 4, 9)
"""Times as many are looked up next, where most of those before may not be seen or are gone."""
NEAREST = 100
"""So many of them are found."""
DIGITS = 4
"""Of a cosine: beyond them it depends on the machine."""


Rows = Sequence[tuple[int, bytes | memoryview]]
Read = Callable[[Collection[int]], Rows]
"""Those of the rows with these keys that may be found: their keys and vectors."""


class Stored(NamedTuple):
    """A vector as it is kept in a row."""

    data: bytes
    code: bytes


def nearest(
    asked: Vectors,
    scale: Scale,
    table: type[Vector],
    read: Read,
    *,
    of: str,
    model: str,
    audiences: Collection[str],
    keys: Collection[int],
) -> dict[int, float]:
    """Cosines by the keys of rows, of those alone that may be found: of the nearest that these audiences
    have, and of all that have `keys`. `of`: the table's column that says whose a vector is."""
    if not asked.any():
        return {}
    cosines: dict[int, float] = {}
    wanted = set(keys)
    for some in _by_codes(asked, table, of, model, audiences):
        found = read(wanted.union(some))
        cosines |= _compared(found, asked)
        wanted.clear()
        if 2 * len({key for key, _data in found}.intersection(some)) >= len(some):
            break
        _let_go(table, of, model, audiences, some)
    if wanted:
        cosines |= _compared(read(wanted), asked)
    close = sorted(cosines, key=lambda key: (-cosines[key], -key))[:NEAREST]
    among = {*keys, *(key for key in close if cosines[key] >= scale.floor)}
    return {key: cosine for key, cosine in cosines.items() if key in among}


def _by_codes(
    asked: Vectors, table: type[Vector], of: str, model: str, audiences: Collection[str]
) -> Iterator[list[int]]:
    """Keys of the nearest by their codes, some at a time."""
    numpy = import_module("numpy")  # needed by few installations
    at_once = max(1, min(LOOKED_UP, BYTES // _width(asked)))
    heights = heights_of(asked)
    code = as_words(code_at(heights))[:, 0]
    most = at_once * sum(DEEPER)
    found = [
        its
        for audience in sorted(audiences)
        if (its := held.nearest(table, of, model, audience, code, most)) is not None
    ]
    if not found:
        return
    keys = numpy.concatenate([its.keys for its in found])
    codes = numpy.concatenate([its.codes for its in found], axis=1)
    # Of those that are as far the newest come first.
    left = numpy.lexsort((-keys, numpy.concatenate([its.far for its in found])))[:most]
    for times in DEEPER:
        weighed, rest = numpy.split(left, [WEIGHED * times * at_once])
        if not len(weighed):
            return
        order = numpy.argsort(-likeness(codes[:, weighed], heights), kind="stable")
        some, others = numpy.split(weighed[order], [times * at_once])
        yield keys[some].tolist()
        left = numpy.concatenate([others, rest])


def _let_go(
    table: type[Vector], of: str, model: str, audiences: Collection[str], keys: Sequence[int]
) -> None:
    rows: QuerySet[Vector] = QuerySet(table).filter(Among(of, keys), model=model)
    there = set(rows.values_list(of, flat=True))
    gone = set(keys) - there
    if gone:
        for audience in audiences:
            held.drop(table, model, audience, gone)


def near_of(embedder: Embedder, scale: Scale, cosines: Mapping[int, float]) -> Near:
    by_id = {str(key): cosine for key, cosine in cosines.items()}
    return Near(by_id, scale.floor, embedder.share)


def _compared(rows: Sequence[tuple[int, bytes | memoryview]], asked: Vectors) -> dict[int, float]:
    width = _width(asked)
    rows = [row for row in rows if len(row[1]) == width]
    if not rows:
        return {}
    numpy = import_module("numpy")  # needed by few installations
    every = as_vectors([data for _key, data in rows])
    # Cutting their numbers short has made them a little longer or shorter.
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", every, every))
    found = numpy.einsum("ij,j->i", every, asked) / numpy.where(lengths > 0, lengths, 1)
    cosines = found.astype(numpy.float64).round(DIGITS).tolist()
    return {key: cosine for (key, _data), cosine in zip(rows, cosines, strict=True)}


def as_stored(vector: Vectors) -> Stored:
    return Stored(vector.astype(KEPT).tobytes(), code_of(vector))


def as_vectors(kept: Sequence[bytes | memoryview]) -> Vectors:
    """Of one length, as they stand in rows."""
    numpy = import_module("numpy")  # needed by few installations
    numbers = numpy.frombuffer(b"".join(kept), dtype=KEPT).astype(numpy.float32)
    return numbers.reshape(len(kept), -1)


def _width(vector: Vectors) -> int:
    """Bytes that its row keeps."""
    return len(vector) * WIDTH // 8


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
