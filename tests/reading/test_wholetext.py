"""What others wrote is written as JSON whatever it holds."""

from __future__ import annotations

import json

import pytest

from harness.frontends import FrontEnd
from reading.wholetext import json_of

ODD = [{"number": 10**30}, {"half": "a\ud800"}, {"in": [{"deep": [-(2**70)]}]}, {"plain": 1}]


@pytest.mark.parametrize("value", ODD)
def test_numbers_of_any_length_and_halves_of_characters_are_written(value):
    assert json.loads(json_of(value)) == value


@pytest.mark.parametrize("state", ODD)
def test_no_state_of_a_front_end_ends_the_conversation(state):
    """Each request to the model tells of it."""
    (note,) = FrontEnd(state=state).notes
    assert json.loads(note.value) == state
