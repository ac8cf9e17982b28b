"""What others wrote is written as JSON whatever it holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.frontends import FrontEnd
from reading.wholetext import decoded, json_of, mended

ODD = [{"number": 10**30}, {"half": "a\ud800"}, {"in": [{"deep": [-(2**70)]}]}, {"plain": 1}]


@pytest.mark.parametrize("value", ODD)
def test_numbers_of_any_length_and_halves_of_characters_are_written(value):
    assert json.loads(json_of(value)) == value


@pytest.mark.parametrize("state", ODD)
def test_no_state_of_a_front_end_ends_the_conversation(state):
    """Each request to the model tells of it."""
    (note,) = FrontEnd(state=state).notes
    assert json.loads(note.value) == state


@given(
    st.integers(16_380, 16_390),
    st.sampled_from(["\ud83d\ude00", "\ud800x", "x\udc00", "\ude00\ud83d"]),
)
def test_what_is_replaced_does_not_depend_on_where_it_stands(length, odd):
    """Long texts are mended in pieces."""
    text = "a" * (length // 2) + odd + "é"
    alone = mended(odd)
    assert mended(text) == "a" * (length // 2) + alone + "é"
    data = b"a" * length + "é€😀".encode() + b"\xe2\x82\xff"
    assert decoded(data) == data.decode(errors="replace")
