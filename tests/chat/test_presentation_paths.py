"""Paths in narrow places: their text stays whole, and nobody's becomes markup."""

from __future__ import annotations

import pytest

from chat.presentation.paths import as_path
from chat.presentation.titles import THING_CHARACTERS, in_words


@pytest.mark.parametrize(
    ("path", "drawn"),
    [
        (
            "app/deep/main.py",
            (
                '<span class="path"><span class="folders">app/deep</span>'
                '<span class="name">/main.py</span></span>'
            ),
        ),
        ("main.py", '<span class="path"><span class="name">main.py</span></span>'),
        (
            "<b>/<i>",
            (
                '<span class="path"><span class="folders">&lt;b&gt;</span>'
                '<span class="name">/&lt;i&gt;</span></span>'
            ),
        ),
    ],
)
def test_the_folders_of_a_path_may_give_way_and_its_name_does_not(path: str, drawn: str):
    assert as_path(path) == drawn


def test_the_title_of_a_call_keeps_the_name_of_its_file_however_long_the_way_to_it():
    title = in_words("write_file", "done", f"{'folder/' * THING_CHARACTERS}main.py")
    assert title is not None
    assert "/main.py</span></code>" in title
    assert len(title) < 2 * THING_CHARACTERS


def test_what_is_remembered_is_told_in_words():
    assert in_words("remember", "done", "Tea at four") == "Remembered: <code>Tea at four</code>"
    assert in_words("forget_memory", "doing", "mem_1") == "Forgetting something remembered"
