"""Lines are matched within a number of steps, whatever they are."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reading.matching import matched

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "x = 1"]), max_size=60)


@given(old=LINES, new=LINES)
def test_what_is_found_is_what_python_finds(old, new):
    matcher = matched(old, new)
    assert matcher is not None
    assert matcher.get_opcodes() == SequenceMatcher(None, old, new).get_opcodes()


def woven(pairs: int, kinds: int) -> tuple[list[str], list[str]]:
    """Lines of which each second one is in both texts, at many places, between such as are in one."""
    both = [str(number % kinds) for number in range(pairs)]
    old = [line for number, word in enumerate(both) for line in (word, f"old {number}")]
    new = [line for number, word in enumerate(both) for line in (word, f"new {number}")]
    return old, new


@pytest.mark.parametrize(("pairs", "kinds"), [(995, 100), (995, 50), (990, 99)])
def test_lines_that_take_long_are_not_matched(pairs, kinds):
    assert matched(*woven(pairs, kinds)) is None


def test_how_many_steps_there_may_be_is_said():
    old, new = woven(100, 100)
    assert matched(old, new) is not None
    assert matched(old, new, steps=100) is None


def test_a_line_is_compared_once_and_not_anew_for_each_piece():
    asked = 0

    class Counted(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal asked
            asked += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    old, new = woven(995, 100)
    assert matched([Counted(line) for line in old], [Counted(line) for line in new]) is None
    assert asked < 2 * (len(old) + len(new))
