"""Finds turns of conversations that answer a question: an index of turns, and turns ranked with reasons.

Plain Python over what it is given: no table, no permission. What is true of memories as well (terms, BM25,
the question) stands in the modules beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from .question import Question, read_question
from .ranking import Near, TermIndex, fused, weights_of
from .words import terms_of

NEIGHBOURS = 0.4
"""How much of its neighbours' score a turn has as well: an answer rarely repeats its question's words."""
AFTER_A_QUESTION = 0.6
"""So of the turn before, where that ends with a question mark."""
ANSWER = 0.9
"""And where it is nothing but a question."""
ONLY_ASKS = 0.5
"""What such a turn counts itself: it is asked there, and not answered."""
SPEAKER = 1.25
"""What turns of somebody who is named in the question count for."""
AS_WRITTEN = 1.5
"""What turns count for that have an identifier of the question as it is written."""
AS_STRONG, AS_COVERED = 0.5, 0.75
"""Shares of the best score and of its cover from which on turns are about the same: of these the newest goes
first where a question asks for what is so now."""
ABOUT_THE_SAME = 50
"""So many of the best are compared for that."""
LOW = 0.56
"""Below this share of the question nothing that was found is taken for an answer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. Turns of one `group` (a conversation, a session of it) that follow each other are
    neighbours."""

    id: str
    text: str
    speaker: str = ""
    at: datetime | None = None
    group: str = ""
    terms: tuple[str, ...] | None = None
    """Its terms in order, where somebody has them at hand; None: they are found in the text."""


@dataclass(frozen=True, slots=True)
class Ranked:
    turn: Turn
    score: float
    words: tuple[str, ...]
    """Terms of the question that stand in it."""
    near: tuple[str, ...]
    """Terms that stand in a turn beside it only."""
    likeness: float | None = None
    """The cosine of its vector and the question's, where that is known."""


@dataclass(frozen=True, slots=True)
class Found:
    hits: tuple[Ranked, ...]
    confidence: float
    """The share of the question that the best hits and their neighbours cover, from 0 to 1."""

    @property
    def low(self) -> bool:
        """Better to say that it is not known."""
        return self.confidence < LOW


class TurnIndex:
    """Turns in the order in which they were said. `asked`: the only question that will be asked, where that
    is known: the index is made for it alone."""

    def __init__(self, turns: Sequence[Turn], asked: Question | None = None) -> None:
        self._turns = list(turns)
        self._terms = TermIndex(
            (terms_of(turn.text) if turn.terms is None else turn.terms for turn in self._turns),
            None if asked is None else {*asked.terms, *asked.pairs, *asked.names},
        )
        self._asks = [_asks(turn.text) for turn in self._turns]
        speakers = {turn.speaker for turn in self._turns}
        self._speakers = {speaker: set(terms_of(speaker)) for speaker in speakers}
        self._asked = asked

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        near: Near | None = None,
        behind: Callable[[Turn], bool] | None = None,
    ) -> Found:
        """The turns that fit best, best first; the same for the same, whoever asks. `near`: what vectors say,
        by the ids of turns. `behind`: of which turns those stand behind all others that fit."""
        asked = self._asked
        question = asked if asked and asked.text == query else read_question(query)
        terms, named = self._without_speakers(question)
        own = self._fitting(question, self._terms.scores(weights_of(question, terms)))
        scores = self._shared(own)
        like = self._by_number(near) if near is not None else {}
        if near is not None:
            best = sorted(scores, key=lambda number: (-scores[number], -number))[:5]
            covered = self._best_cover(question, terms, best)
            scores = fused(scores, like, near, covered=covered)
        for number in scores:
            if self._turns[number].speaker in named:
                scores[number] *= SPEAKER
        if question.phrases:
            scores = {number: score for number, score in scores.items() if number in own}
        order = sorted(scores, key=lambda number: (-scores[number], -number))
        if question.now:
            order = self._newest_first(order, scores, question, terms)
        confidence = round(self._best_cover(question, terms, order[:5]), 4)
        if behind is not None:
            order.sort(key=lambda number: behind(self._turns[number]))
        best = order[:limit]
        return Found(
            tuple(self._ranked(number, scores[number], terms, like.get(number)) for number in best),
            confidence,
        )

    def _without_speakers(self, question: Question) -> tuple[list[str], set[str]]:
        """Names of who speaks say whose turns are meant, not what is said in them. The second: who is."""
        asked = set(question.terms)
        named = {who for who, names in self._speakers.items() if names and names <= asked}
        every = {term for who in named for term in self._speakers[who]}
        left = [term for term in question.terms if term not in every]
        if not left:
            return list(question.terms), set()
        return left, named if len(named) == 1 else set()

    def _fitting(self, question: Question, scores: dict[int, float]) -> dict[int, float]:
        if question.phrases:
            scores = {
                number: score
                for number, score in scores.items()
                if all(
                    phrase in " ".join(self._turns[number].text.lower().split())
                    for phrase in question.phrases
                )
            }
        for number in scores if question.identifiers else ():
            text = self._turns[number].text.lower()
            if any(written in text for written in question.identifiers):
                scores[number] *= AS_WRITTEN
        return scores

    def _shared(self, own: Mapping[int, float]) -> dict[int, float]:
        shared = {
            number: ONLY_ASKS * score if self._asks[number] == 2 else score
            for number, score in own.items()
        }
        for number, score in own.items():
            if self._are_neighbours(number - 1, number):
                shared[number - 1] = shared.get(number - 1, 0.0) + NEIGHBOURS * score
            if self._are_neighbours(number, number + 1):
                share = (NEIGHBOURS, AFTER_A_QUESTION, ANSWER)[self._asks[number]]
                shared[number + 1] = shared.get(number + 1, 0.0) + share * score
        return shared

    def _are_neighbours(self, one: int, next_one: int) -> bool:
        return (
            one >= 0
            and next_one < len(self._turns)
            and self._turns[one].group == self._turns[next_one].group
        )

    def _beside(self, number: int) -> list[int]:
        pairs = ((number - 1, number), (number, number + 1))
        return [
            other
            for one, next_one in pairs
            for other in (one, next_one)
            if other != number and self._are_neighbours(one, next_one)
        ]

    def _best_cover(self, question: Question, terms: Sequence[str], order: Sequence[int]) -> float:
        return max((self._cover(question, terms, number) for number in order), default=0.0)

    def _cover(self, question: Question, terms: Sequence[str], number: int) -> float:
        """The share of what the question says that stands in the turn, or in the question that it follows.

        A name counts once and as a whole, and no more than what is asked of it: a turn about the same thing
        is no answer yet. Where no name of the question stands, it is about something else, which halves it.
        """
        halves = {half for name in question.names for half in name.split()}
        asked = {term: self._terms.weight(term) for term in terms if term not in halves}
        most = max(asked.values(), default=1.0)
        asked |= {name: min(most, self._terms.weight(name)) for name in question.names}
        here = [number]
        if self._are_neighbours(number - 1, number) and self._asks[number - 1]:
            here.append(number - 1)
        there = {term for term in asked if any(self._terms.has(place, term) for place in here)}
        share = sum(asked[term] for term in there) / (sum(asked.values()) or 1.0)
        return share if not question.names or there & {*question.names} else share / 2

    def _by_number(self, near: Near) -> dict[int, float]:
        every, cosines = enumerate(self._turns), near.cosines
        return {number: cosines[turn.id] for number, turn in every if turn.id in cosines}

    def _newest_first(
        self,
        order: list[int],
        scores: Mapping[int, float],
        question: Question,
        terms: Sequence[str],
    ) -> list[int]:
        if not order:
            return order
        cover = {number: self._cover(question, terms, number) for number in order[:ABOUT_THE_SAME]}
        enough = AS_COVERED * max(cover.values())
        strong = [
            number
            for number in cover
            if scores[number] >= AS_STRONG * scores[order[0]] and cover[number] >= enough > 0
        ]
        strong.sort(key=lambda number: (_time(self._turns[number]), number), reverse=True)
        chosen = set(strong)
        return [*strong, *(number for number in order if number not in chosen)]

    def _ranked(
        self, number: int, score: float, terms: Sequence[str], likeness: float | None
    ) -> Ranked:
        words = tuple(term for term in terms if self._terms.has(number, term))
        beside = self._beside(number)
        near = tuple(
            term
            for term in terms
            if term not in words and any(self._terms.has(other, term) for other in beside)
        )
        return Ranked(self._turns[number], round(score, 6), words, near, likeness)


def _asks(text: str) -> int:
    """0: it states something; 1: it ends with a question; 2: it is nothing else."""
    text = text.rstrip()
    if not text.endswith("?"):
        return 0
    return 1 if any(mark in text for mark in (". ", "! ", "\n")) else 2


def _time(turn: Turn) -> float:
    return turn.at.timestamp() if turn.at is not None else 0.0
