"""Where not all that a conversation recalled has room, what is asked now is told, and the rest goes some at a
time."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from recall.room import newest

LINES = {name: name * 9 for name in "abcdefghij"}
"""Ten characters each, with the end of its line."""


def test_what_is_asked_now_is_told_also_where_the_room_is_full_and_told_first_was_what_came_first():
    assert newest([["a", "b"], ["c"]], LINES, 30) == (["a", "b", "c"], 0)
    assert newest([["a", "b", "c"], ["d"]], LINES, 30) == (["c", "d"], 2)
    assert newest([["a", "b", "c"], ["d"], ["a"]], LINES, 30) == (["c", "d", "a"], 1)


def test_what_stays_is_what_stood_there_so_that_the_beginning_rarely_changes():
    recalls = [[name] for name in LINES]
    told = [newest(recalls[: end + 1], LINES, 50)[0] for end in range(len(recalls))]
    changed = [old for old, new in itertools.pairwise(told) if new[: len(old)] != old]
    assert len(changed) == 2


def test_of_what_one_message_recalled_the_best_is_told():
    assert newest([["a", "b", "c", "d"]], LINES, 25) == (["a", "b"], 2)
    assert newest([["a", "b"]], LINES, 5) == ([], 2)


def test_what_is_gone_takes_no_room():
    assert newest([["gone", "a"], ["a", "gone"]], LINES, 10) == (["a"], 0)


@given(st.lists(st.lists(st.sampled_from([*LINES, "gone"]), max_size=4)), st.integers(0, 120))
def test_it_fits_and_what_came_last_is_there(recalls, room):
    told, missing = newest(recalls, LINES, room)
    assert len(told) == len(set(told))
    assert sum(len(LINES[uid]) + 1 for uid in told) <= room
    every = {uid for recall in recalls for uid in recall if uid in LINES}
    assert len(told) + missing == len(every)
    last = next(([u for u in each if u in LINES] for each in reversed(recalls)), [])
    if last and room >= 10:
        assert last[0] in told
