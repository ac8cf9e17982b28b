"""A diff says exactly what changed, however large the file."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tools_app.diffs import MATCHED_LINES, SHOWN_CHARACTERS, diff_of


def applied(before: str, diff: str) -> str:
    """What `before` becomes when a unified diff is applied to it, by its line numbers."""
    old = before.split("\n")
    old = [f"{line}\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    new: list[str] = []
    at = 0
    lines = diff.splitlines(keepends=True) if "\r" not in diff else diff.split("\n")
    lines = [line if line.endswith("\n") else f"{line}\n" for line in lines if line]
    for index, line in enumerate(lines):
        last_of_file = index + 1 < len(lines) and lines[index + 1].startswith("\\")
        text = line[1:-1] if last_of_file else line[1:]
        if line.startswith("@@"):
            header = re.match(r"@@ -(\d+)(?:,(\d+))?", line)
            assert header is not None
            first = int(header[1]) - (header[2] != "0")
            new += old[at:first]
            at = first
        elif line.startswith(" "):
            assert old[at] == text
            new.append(text)
            at += 1
        elif line.startswith("-"):
            assert old[at] == text
            at += 1
        elif line.startswith("+"):
            new.append(text)
    return "".join(new + old[at:])


LINES = st.lists(st.sampled_from(["", "a", "b", "c", "x = 1"]), max_size=40).map("\n".join)


@settings(max_examples=examples(300))
@given(before=LINES, after=LINES)
def test_a_diff_applied_to_the_old_text_gives_the_new_one(before, after):
    change = diff_of("a", before, after)
    assert applied(before, change.diff) == after
    assert (change.diff == "") == (before == after)
    plus = [line for line in change.diff.splitlines() if line.startswith("+")]
    minus = [line for line in change.diff.splitlines() if line.startswith("-")]
    assert (change.added, change.removed) == (len(plus), len(minus))


def test_only_what_surrounds_a_change_is_shown():
    before = "".join(f"{n}\n" for n in range(100))
    change = diff_of("a", before, before.replace("50\n", "fifty\n"))
    assert change.diff.splitlines() == [
        "@@ -48,7 +48,7 @@", " 47", " 48", " 49", "-50", "+fifty", " 51", " 52", " 53"
    ]  # fmt: skip


def test_a_missing_last_line_end_is_told():
    assert diff_of("a", "x", "y").diff == (
        "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"
    )


def test_a_new_file_is_all_added():
    change = diff_of("a", "", "x\ny\n", created=True)
    assert change.diff == "@@ -0,0 +1,2 @@\n+x\n+y\n"
    assert (change.added, change.removed, change.created) == (2, 0, True)


def test_a_change_too_large_to_match_is_shown_as_one_block():
    count = MATCHED_LINES + 1
    before = "same\n" + "".join(f"{n}\n" for n in range(count)) + "end\n"
    after = "same\n" + "".join(f"{n}\n" for n in reversed(range(count))) + "end\n"
    change = diff_of("a", before, after)
    # the line in the middle keeps its place, but nothing is matched line by line
    assert change.added == change.removed == count
    assert applied(before, change.diff) == after


def test_a_long_diff_is_cut_with_a_note_and_true_counts():
    after = "".join(f"line {n} {'x' * 100}\n" for n in range(1_500))
    change = diff_of("a", "", after, created=True)
    assert len(change.diff) < SHOWN_CHARACTERS + 100
    assert change.diff.endswith("more lines of the diff are not shown\n")
    assert change.added == 1_500
