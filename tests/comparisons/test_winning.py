"""Which answer wins follows from whether it passed, its points and its tokens."""

from __future__ import annotations

import pytest

from comparisons.winning import Standing, Won, winner_of


def standing(place: int, points: float | None, tokens: int, *, passed: bool = True) -> Standing:
    return Standing(place, passed, points, tokens)


@pytest.mark.parametrize(
    ("standings", "won"),
    [
        ([standing(1, 3, 10), standing(2, 5, 900)], Won(2, "quality")),
        ([standing(1, 5, 20), standing(2, 5, 10), standing(3, 4, 1)], Won(2, "tokens")),
        ([standing(1, None, 20), standing(2, 5, 30)], Won(1, "tokens")),
        ([standing(1, 5, 1, passed=False), standing(2, 1, 9)], Won(2, "alone")),
        ([standing(1, 5, 7), standing(2, 5, 7)], Won(0, "tie")),
        ([standing(1, 5, 7, passed=False)], Won()),
        ([], Won()),
    ],
)
def test_the_better_answer_wins_and_of_equal_ones_the_shorter_way(standings, won):
    assert winner_of(standings) == won
