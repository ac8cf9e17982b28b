"""Diffs are tables whose added and removed lines are told by sign, word and number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rendering.diff import MOST_LINES, Line, diff_table, parse_diff
from tests.rendering.test_rendering_markdown import faults_of
from tools_app.diffs import diff_of

DIFF = "@@ -3,3 +3,4 @@\n same\n-old\n+new\n+more\n end\n"


def test_lines_are_numbered_on_their_own_side() -> None:
    assert parse_diff(DIFF) == [
        Line("hunk", "@@ -3,3 +3,4 @@"),
        Line("same", "same", 3, 3),
        Line("removed", "old", 4, None),
        Line("added", "new", None, 4),
        Line("added", "more", None, 5),
        Line("same", "end", 5, 6),
    ]


def test_a_removed_line_that_begins_with_dashes_is_no_header() -> None:
    assert parse_diff("@@ -1 +1 @@\n--- a\n+++ b\n")[1:] == [
        Line("removed", "-- a", 1, None),
        Line("added", "++ b", None, 1),
    ]


def test_remarks_between_lines_are_notes() -> None:
    assert parse_diff("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n")[2] == Line(
        "note", "No newline at end of file"
    )


def test_added_and_removed_are_told_by_sign_and_word() -> None:
    html = diff_table(DIFF, caption="Changes of a.py")

    assert '<span aria-hidden="true">+</span><span class="visually-hidden">added</span>' in html
    assert '<span aria-hidden="true">−</span><span class="visually-hidden">removed</span>' in html
    assert '<caption class="visually-hidden">Changes of a.py</caption>' in html


def test_text_of_a_diff_is_escaped() -> None:
    html = diff_table("@@ -1 +1 @@\n-<script>\n+<img src=x>\n", caption="<b>")

    assert faults_of(html) == []
    assert "&lt;script&gt;" in html


def test_a_huge_diff_says_how_much_is_left_out() -> None:
    html = diff_table("@@ -1 +1 @@\n" + "+x\n" * (MOST_LINES + 9), caption="x")

    assert html.count('class="diff-added"') == MOST_LINES - 1
    assert "10 more lines are not shown." in html


@given(st.text(alphabet="ab\n", max_size=60), st.text(alphabet="ab\n", max_size=60))
def test_every_diff_we_make_is_understood(before: str, after: str) -> None:
    made = diff_of("a.txt", before, after)
    kinds = [line.kind for line in parse_diff(made.diff)]

    assert kinds.count("added") == made.added
    assert kinds.count("removed") == made.removed


@given(st.text(max_size=200))
def test_no_text_breaks_the_table(text: str) -> None:
    assert faults_of(diff_table(text, caption=text)) == []
