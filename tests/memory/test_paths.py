"""A path shows what it is: signs that nobody sees are refused in it, and in none that is made of words."""

from __future__ import annotations

import pytest

from harness.errors import Invalid
from memory.paths import as_part, check_path

UNSEEN = ["\u3164", "\u2800", "\ufe0f", "\ufe00", "\U000e0101", "\u115f", "\u200b", "\t", "\n"]


@pytest.mark.parametrize("sign", UNSEEN, ids=[f"{ord(sign):x}" for sign in UNSEEN])
def test_a_sign_that_nobody_sees_is_in_no_path(sign: str) -> None:
    with pytest.raises(Invalid, match=f"{ord(sign):04x}"):
        check_path(f"/projects/notes{sign}.md")
    assert check_path(f"/{as_part(f'My{sign}notes')}.md") == "/my-notes.md"


@pytest.mark.parametrize("path", ["/projects/Bücher.md", "/ملاحظات/سفر.md", "/メモ.md", "/a b.md"])
def test_a_name_of_any_script_is_a_path(path: str) -> None:
    assert check_path(path) == path
