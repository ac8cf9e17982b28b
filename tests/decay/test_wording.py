"""What is left of a text: its beginning, then a few words of that, whatever the text is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decay.models import Step
from decay.wording import SUMMARY, left_of, summary_of

DAY = datetime(2026, 1, 31, tzinfo=UTC)
REST = " And so on, as it was told by everybody who was there at the time, in many words." * 4


HEADED = "# Notes of the week\n\nThe ship left at noon."
SHORTENED = "E.g. the ship with the blue sail left for Ghent."


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Short.", "Short."),
        ("", ""),
        (HEADED + REST, "Notes of the week The ship left at noon. …"),
        (SHORTENED + REST, f"{SHORTENED} …"),
        ("ship " * 200, f"{('ship ' * 47).strip()} …"),
        ("  \n" * 300, "…"),
    ],
)
def test_a_summary_is_the_first_sentences(text: str, left: str):
    assert summary_of(text) == left


@given(st.text(max_size=3_000))
def test_what_is_left_is_never_long_and_the_same_on_every_way(text: str):
    summary = left_of(Step.SUMMARY, text, more=False, of=DAY)
    assert len(summary) <= SUMMARY
    marker = left_of(Step.MARKER, text, more=False, of=DAY)
    assert marker.startswith("[faded 2026-01-31]")
    assert marker == left_of(Step.MARKER, summary, more=False, of=DAY)
    assert left_of(Step.GONE, text, more=False, of=DAY) == ""
