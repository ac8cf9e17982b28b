"""How well texts fit a question, by their terms alone: BM25, and how much of the question is covered.

The figures are those of the field, not fitted to any corpus. What is counted are the texts that are given,
so that nothing of others shows in an order. Vectors are mixed in here as well (`fused`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .question import Question
from .words import pairs_of

K1 = 1.2
"""How fast a term that is repeated stops to count."""
B = 0.6
"""How much long texts count less; below the usual 0.75, because turns of a dialogue are short."""
PAIR = 0.3
"""What two terms side by side count beside themselves: of the same sentence in other words little is left."""
NAME = 1.0
"""So of a name's: half of it is another's."""


class TermIndex:
    """Texts as their terms, in order, by number. `asked`: the only terms and pairs of them that will be asked
    for, where that is known; None: any."""

    def __init__(
        self, texts: Iterable[Sequence[str]], asked: Collection[str] | None = None
    ) -> None:
        self._counts: list[Mapping[str, int]] = []
        self._lengths: list[int] = []
        for terms in texts:
            self._lengths.append(max(1, len(terms)))
            self._counts.append(
                Counter(itertools.chain(terms, pairs_of(terms)))
                if asked is None
                else _counted(terms, asked)
            )
        self._average = sum(self._lengths) / max(1, len(self._lengths))
        self._places: dict[str, list[int]] = {}
        for number, counts in enumerate(self._counts):
            for term in counts:
                self._places.setdefault(term, []).append(number)

    def __len__(self) -> int:
        return len(self._counts)

    def weight(self, term: str) -> float:
        """How much a term says: the fewer texts have it, the more."""
        having = len(self._places.get(term, ()))
        return math.log(1 + (len(self) - having + 0.5) / (having + 0.5))

    def scores(self, terms: Mapping[str, float]) -> dict[int, float]:
        """BM25 of all texts that have any of the terms, each of which counts as much as is said."""
        found: dict[int, float] = {}
        for term, factor in terms.items():
            weight = factor * self.weight(term)
            for number in self._places.get(term, ()):
                often = self._counts[number][term]
                norm = K1 * (1 - B + B * self._lengths[number] / self._average)
                found[number] = found.get(number, 0.0) + weight * often * (K1 + 1) / (often + norm)
        return found

    def has(self, number: int, term: str) -> bool:
        return term in self._counts[number]

    def known(self, term: str) -> bool:
        return term in self._places


def _counted(terms: Sequence[str], asked: Collection[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    before = ""
    for term in terms:
        if term not in asked:
            before = ""
            continue
        counts[term] = counts.get(term, 0) + 1
        if before and (pair := f"{before} {term}") in asked:
            counts[pair] = counts.get(pair, 0) + 1
        before = term
    return counts


def weights_of(question: Question, terms: Sequence[str]) -> dict[str, float]:
    """What each term of a question, and each pair of them side by side, counts."""
    return {
        **dict.fromkeys(terms, 1.0),
        **dict.fromkeys(question.pairs, PAIR),
        **dict.fromkeys(question.names, NAME),
    }


@dataclass(frozen=True, slots=True)
class Near:
    """What vectors say of texts: cosines with the question's by id, and what these count."""

    cosines: Mapping[str, float]
    floor: float
    """Below it a text is about something else."""
    share: tuple[float, float]
    """Of a mixed score, where words cover the question, and where they cover nothing of it."""


def fused(
    lexical: Mapping[int, float], cosines: Mapping[int, float], near: Near, *, covered: float
) -> dict[int, float]:
    """Words and vectors as one score, each as a share of its best. A text without a vector is judged by its
    words alone. Where words cover the question vectors only settle what is close; where they do not, they
    find what was said in other words."""
    best = max(lexical.values(), default=0.0) or 1.0
    reach = max(cosines.values(), default=0.0) - near.floor
    if reach <= 0:
        return dict(lexical)
    least, most = near.share
    share = least + (most - least) * (1 - covered)
    mixed = {}
    for number in {**lexical, **cosines}:
        words, cosine = lexical.get(number, 0.0) / best, cosines.get(number)
        if cosine is None:
            mixed[number] = words
        elif words or cosine >= near.floor:
            like = max(0.0, cosine - near.floor) / reach
            mixed[number] = (1 - share) * words + share * like
    return mixed
