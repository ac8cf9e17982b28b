"""Texts that somebody else will normalize: no language loses anything, and no row of marks stays long."""

from __future__ import annotations

import pytest

from reading.normalizing import MARKS_IN_A_ROW, normalized, with_few_marks

LETTERS = ("plain", "é", "e\u0301", "ש\u05c1\u05b8", "\u0e17\u0e35\u0e48", "日本語", "👩‍👩‍👧", "🇩🇪")


@pytest.mark.parametrize("text", LETTERS)
def test_what_a_language_needs_stays(text: str) -> None:
    assert with_few_marks(text * 500) == text * 500


@pytest.mark.parametrize("sign", ["\u0301", "\u0323", "\u0f73", "\uff9e", "\U00010efd", "\u0378"])
def test_of_marks_in_a_row_the_first_ones_stay(sign: str) -> None:
    """The last two are no characters yet, and may be marks to whoever knows a newer Unicode."""
    kept = with_few_marks(f"a{sign * 50_000}b")
    assert kept == f"a{sign * MARKS_IN_A_ROW}b"
    normalized("NFD", kept)
