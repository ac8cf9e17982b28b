"""Which lines of two texts agree, found within a number of steps; what to do past it, the caller knows.

Python's own matcher looks through both texts once more for every piece it finds: texts can be made for which
two thousand lines take seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

STEPS = 500_000
"""Comparisons of two lines: less than a tenth of a second. Changes that people make take some thousands."""


class _TooManySteps(Exception):
    pass


class _Counting(SequenceMatcher[int]):
    def __init__(self, old: Sequence[int], new: Sequence[int], steps: int) -> None:
        super().__init__(None, old, new)
        self._left = steps
        self._before = [
            0,
            *accumulate(2 + len(self.b2j.get(line, ())) for line in old),  # type: ignore[attr-defined]
        ]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        self._left -= self._before[-1 if ahi is None else ahi] - self._before[alo]
        if self._left < 0:
            raise _TooManySteps
        return super().find_longest_match(alo, ahi, blo, bhi)


def matched(
    old: Sequence[str], new: Sequence[str], *, steps: int = STEPS
) -> SequenceMatcher[int] | None:
    """A matcher that has matched; None where it would take more steps than these."""
    numbers: dict[str, int] = {}
    # Two numbers are compared in no time, two long lines are not.
    before = [numbers.setdefault(line, len(numbers)) for line in old]
    after = [numbers.setdefault(line, len(numbers)) for line in new]
    matcher = _Counting(before, after, steps)
    try:
        matcher.get_matching_blocks()
    except _TooManySteps:
        return None
    return matcher
