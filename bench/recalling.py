"""How well facts are found again in long dialogues (`bench.dialogues`), and how sure one can be of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bench.budgets import Reading
from bench.dialogues import Question, generate
from bench.stage import Stage
from memory.retrieval.turns import Found, TurnIndex

FIRST = 5
"""So many hits are looked at."""


def recall(stage: Stage) -> Iterator[Reading]:
    corpus = generate(conversations=60, questions=150) if stage.quick else generate()
    index = TurnIndex(corpus.turns)
    good: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for question in corpus.questions:
        for part, is_good in _judged(question, index.search(question.text, limit=FIRST)):
            every[part] += 1
            good[part] += is_good
    for part, count in every.items():
        yield Reading(f"RECALL {part}", 100 * good[part] / count, good[part], count)


def _judged(question: Question, found: Found) -> Iterator[tuple[str, bool]]:
    ids = [hit.turn.id for hit in found.hits]
    if not question.evidence:
        yield "unknown", found.low
        return
    is_there = question.newest in ids if question.now else bool(question.evidence & set(ids))
    yield "evidence", is_there
    yield "sure", not found.low
    if question.now:
        yield "now", ids[:1] == [question.newest]
    if question.in_other_words:
        yield "other words", is_there
