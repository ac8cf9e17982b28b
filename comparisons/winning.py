"""Which of several answers wins: the better one, and of equal ones that which took fewer tokens. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

QUALITY, TOKENS, ALONE, TIE = "quality", "tokens", "alone", "tie"
"""By what one won; a tie has no winner."""


@dataclass(frozen=True, slots=True)
class Standing:
    place: int
    passed: bool
    """It came to a good end, with an answer: a pipeline's own quality gate let it through."""
    points: float | None
    """Of its judge; None: nobody knows."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Won:
    place: int = 0
    """0: nobody has."""
    by: str = ""


def winner_of(standings: Sequence[Standing]) -> Won:
    """Who did not pass cannot win. Points count where all who passed have some."""
    passed = [each for each in standings if each.passed]
    if not passed:
        return Won()
    if len(passed) == 1:
        return Won(passed[0].place, ALONE)
    best = passed
    points = [each.points for each in passed if each.points is not None]
    if len(points) == len(passed):
        best = [each for each in passed if each.points == max(points)]
        if len(best) == 1:
            return Won(best[0].place, QUALITY)
    fewest = min(each.tokens for each in best)
    best = [each for each in best if each.tokens == fewest]
    return Won(best[0].place, TOKENS) if len(best) == 1 else Won(0, TIE)
