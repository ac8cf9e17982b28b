"""What somebody wrote is worked out by no spreadsheet that opens the file it stands in."""

from __future__ import annotations

import pytest

from wire.spreadsheets import cell


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "\ufeff=1"),
        *("\u200b=1", "＝1", "＋1", "－1", "＠a", " ＝1", "\n"),
    ],
)
def test_what_would_be_a_formula_is_text(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a=b", "a=b"), ("1-2", "1-2"), (12, "12"), (None, ""), ("", ""), (" a", " a"), ("é", "é")],
)
def test_everything_else_is_as_it_was(value: object, shown: str) -> None:
    assert cell(value) == shown
