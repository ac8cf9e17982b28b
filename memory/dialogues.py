"""Finds turns of dialogues that stand in no table, by words and, with an embedder, by vectors: for programs
and for measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .embedding.contract import Embedder
from .embedding.nearest import EmbeddedTexts
from .retrieval.ranking import Near
from .retrieval.turns import Found, Turn, TurnIndex


def dialogue_search(
    turns: Sequence[Turn], embedder: Embedder | None
) -> Callable[[str, int], Found]:
    """A function of a question and how many hits are wanted."""
    index = TurnIndex(turns)
    if embedder is None:
        return lambda question, limit: index.search(question, limit=limit)
    texts, ids = EmbeddedTexts(embedder, [turn.text for turn in turns]), [turn.id for turn in turns]
    floor, share = embedder.floor, embedder.share

    def search(question: str, limit: int) -> Found:
        cosines = dict(zip(ids, texts.near(question), strict=True))
        return index.search(question, limit=limit, near=Near(cosines, floor, share))

    return search
