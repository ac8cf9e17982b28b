"""What the model reads, writes and edits."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.content import text_of
from harness.events import DiffDisplay
from harness.tools import ToolContext
from tests.properties import examples
from tools_app.builtin.files import LISTED, READ_CHARACTERS, edit_file
from tools_app.provenance import UPLOADED, WRITTEN, Foreign


def said(outcome) -> str:
    return text_of(outcome.content)


# --- read_file ------------------------------------------------------------------------------------


async def test_a_file_is_read_with_its_range_and_total(root, call):
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    outcome = await call("read_file", path="a.txt")
    assert said(outcome) == "a.txt: lines 1–3 of 3\n1\tone\n2\ttwo\n3\tthree"
    assert not outcome.is_error


async def test_a_range_is_clamped_to_the_file(root, call):
    (root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 13)))
    part = said(await call("read_file", path="a.txt", start_line=9, end_line=10))
    assert part == (
        "a.txt: lines 9–10 of 12\n 9\tline 9\n10\tline 10\n"
        "[2 more lines. Go on with start_line=11.]"
    )
    clamped = said(await call("read_file", path="a.txt", start_line=11, end_line=500))
    assert clamped == "a.txt: lines 11–12 of 12\n11\tline 11\n12\tline 12"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"start_line": 4}, "has 3 lines"),
        ({"start_line": 3, "end_line": 2}, "before start_line"),
        ({"start_line": 0}, "minimum"),
        ({"end_line": -1}, "minimum"),
    ],
)
async def test_a_range_that_names_no_line_is_an_error(root, call, arguments, words):
    (root / "a.txt").write_text("1\n2\n3\n")
    outcome = await call("read_file", path="a.txt", **arguments)
    assert outcome.is_error
    assert words in said(outcome)


async def test_a_long_file_is_read_in_pieces_that_join_without_gap(root, call):
    lines = [f"{n} " + "x" * 90 for n in range(1, 2_001)]
    (root / "a.txt").write_text("\n".join(lines))
    read: list[str] = []
    start: int | None = 1
    while start is not None:
        text = said(await call("read_file", path="a.txt", start_line=start))
        assert len(text) < READ_CHARACTERS + 300
        read += re.findall(r"^ *\d+\t(.*)$", text, re.MULTILINE)
        onward = re.search(r"start_line=(\d+)", text)
        start = int(onward[1]) if onward else None
    assert read == lines


async def test_an_endless_line_is_cut_and_the_cut_is_told(root, call):
    (root / "a.js").write_text("x" * 5_000 + "\nshort\n")
    text = said(await call("read_file", path="a.js"))
    assert "[3,000 more characters]" in text
    assert text.endswith("2\tshort")


async def test_a_binary_file_is_refused_by_what_it_is(root, call):
    (root / "logo.png").write_bytes(b"\x89PNG\0\0")
    outcome = await call("read_file", path="logo.png")
    assert outcome.is_error
    assert "not a text file (image/png, 6 bytes)" in said(outcome)


async def test_an_empty_file_is_said_to_be_empty(root, call):
    (root / "a.txt").touch()
    assert said(await call("read_file", path="a.txt")) == "a.txt is empty."


@pytest.mark.parametrize("path", ["../outside/secret.txt", "link", "a\0", "/etc/passwd", "no.txt"])
async def test_the_model_is_told_why_a_path_is_refused_and_not_where_it_is(root, call, path):
    (root / "link").symlink_to("../outside/secret.txt")
    for name, arguments in {
        "read_file": {},
        "edit_file": {"old_text": "a", "new_text": "b"},
        "outline": {},
    }.items():
        outcome = await call(name, path=path, **arguments)
        assert outcome.is_error
        assert "nobody may read" not in said(outcome)
        assert str(root) not in said(outcome)
        assert "Invalid:" not in said(outcome)


# --- write_file -----------------------------------------------------------------------------------


async def test_a_file_is_created_with_its_folders_and_shown_as_a_diff(root, call):
    outcome = await call("write_file", path="src/deep/a.py", content="x = 1\ny = 2\n")
    assert said(outcome) == "Created src/deep/a.py: 2 lines, 12 bytes."
    assert (root / "src/deep/a.py").read_text() == "x = 1\ny = 2\n"
    assert outcome.display == DiffDisplay(
        path="src/deep/a.py",
        diff="@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n",
        added=2,
        removed=0,
        created=True,
    )


async def test_a_file_is_replaced_as_a_whole(root, call):
    (root / "a.txt").write_text("old\n")
    outcome = await call("write_file", path="a.txt", content="new\r\nlines")
    assert (root / "a.txt").read_bytes() == b"new\r\nlines"
    assert said(outcome).startswith("Replaced a.txt")
    assert isinstance(outcome.display, DiffDisplay)
    assert (outcome.display.added, outcome.display.removed) == (2, 1)
    assert not outcome.display.created


async def test_a_write_outside_is_refused_and_writes_nothing(root, call):
    (root / "link").symlink_to("../outside")
    for path in ("../outside/new.txt", "link/new.txt", "/tmp/new.txt", ".git/hooks/pre-commit"):
        assert (await call("write_file", path=path, content="x")).is_error
    assert [path.name for path in (root.parent / "outside").iterdir()] == ["secret.txt"]
    assert [path.name for path in root.iterdir()] == ["link"]


async def test_half_a_character_is_an_error_and_not_a_crash(root, call):
    outcome = await call("write_file", path="a.txt", content="x\ud800")
    assert outcome.is_error
    assert "Unicode" in said(outcome)
    assert list(root.iterdir()) == []


# --- edit_file ------------------------------------------------------------------------------------


async def test_a_text_that_occurs_once_is_replaced_and_shown(root, call):
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    outcome = await call("edit_file", path="a.txt", old_text="two", new_text="2")
    assert (root / "a.txt").read_text() == "one\n2\nthree\n"
    assert said(outcome) == "Edited a.txt: 1 lines added, 1 removed."
    assert isinstance(outcome.display, DiffDisplay)
    assert outcome.display.diff == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


async def test_none_and_several_places_are_different_errors(root, call):
    (root / "a.txt").write_text("ab ab ab")
    none = await call("edit_file", path="a.txt", old_text="x", new_text="y")
    several = await call("edit_file", path="a.txt", old_text="ab", new_text="y")
    assert none.is_error
    assert several.is_error
    assert "does not occur" in said(none)
    assert "occurs more than once" in said(several)
    assert (root / "a.txt").read_text() == "ab ab ab"


async def test_overlapping_places_are_several(root, call):
    (root / "a.txt").write_text("aaa")
    assert "more than once" in said(
        await call("edit_file", path="a.txt", old_text="aa", new_text="b")
    )


@pytest.mark.parametrize(
    "special",
    ["$1", "$&", "$$", "$`", "\\1", "\\g<0>", "\\n", "\\", "%s", "{0}", "(.*)", "[a", "&"],
)
async def test_special_characters_are_taken_literally(root, call, special):
    """Expanding `$` or `\\1` as a replacement pattern would corrupt the edit."""
    (root / "a.txt").write_text(f"before ({special}) after")
    away = await call("edit_file", path="a.txt", old_text=f"({special})", new_text="<here>")
    assert not away.is_error
    assert (root / "a.txt").read_text() == "before <here> after"
    await call("edit_file", path="a.txt", old_text="<here>", new_text=special)
    assert (root / "a.txt").read_text() == f"before {special} after"


TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab\n$\\1&(){}.*+?^|[]`'% "),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"),
    ),
    max_size=20,
)


@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=TEXT, old=TEXT, after=TEXT, new=TEXT)
def test_an_edit_is_a_literal_replacement_for_every_text(root, before, old, after, new):
    old, new = f"«{old}»", f"<{new}>"
    if (before + old + after).count(old) != 1:
        return
    (root / "a.txt").write_bytes((before + old + after).encode())
    edit_file(ToolContext("1", root), {"path": "a.txt", "old_text": old, "new_text": new})
    assert (root / "a.txt").read_bytes() == (before + new + after).encode()


async def test_line_ends_and_encoding_are_kept(root, call):
    (root / "a.txt").write_bytes("één\r\ntwee\r\ndrie\r\n".encode("cp1252"))
    await call("edit_file", path="a.txt", old_text="één\ntwee", new_text="é\n2")
    assert (root / "a.txt").read_bytes() == "é\r\n2\r\ndrie\r\n".encode("cp1252")
    lacking = await call("edit_file", path="a.txt", old_text="drie", new_text="三")
    assert lacking.is_error
    assert "cp1252" in said(lacking)


async def test_a_mark_at_the_start_of_a_file_is_kept(root, call):
    (root / "a.txt").write_bytes("one\n".encode("utf-8-sig"))
    await call("edit_file", path="a.txt", old_text="one", new_text="two")
    assert (root / "a.txt").read_bytes() == "two\n".encode("utf-8-sig")


async def test_an_edit_that_changes_nothing_is_an_error(root, call):
    (root / "a.txt").write_text("a")
    assert (await call("edit_file", path="a.txt", old_text="a", new_text="a")).is_error


async def test_edits_of_one_file_in_one_step_are_all_kept(root, call):
    (root / "a.txt").write_text("".join(f"<{n}>\n" for n in range(10)))
    outcomes = await asyncio.gather(
        *(call("edit_file", path="a.txt", old_text=f"<{n}>", new_text=str(n)) for n in range(10))
    )
    assert not any(outcome.is_error for outcome in outcomes)
    assert (root / "a.txt").read_text() == "".join(f"{n}\n" for n in range(10))


# --- list_files -----------------------------------------------------------------------------------


async def test_files_are_listed_as_deep_as_asked(root, workspace, call):
    workspace.write_bytes("a.txt", b"12345")
    workspace.write_bytes("src/deep/x.py", b"")
    workspace.write_bytes("node_modules/lib/index.js", b"")
    (root / ".git").mkdir()
    (root / "link").symlink_to("a.txt")
    assert said(await call("list_files", depth=3)).splitlines() == [
        "a.txt  5 bytes",
        "link  (symbolic link, not followed)",
        "node_modules/  (not looked into)",
        "src/",
        "src/deep/",
        "src/deep/x.py  0 bytes",
    ]
    assert said(await call("list_files", path="src")) == "src/deep/\nsrc/deep/x.py  0 bytes"
    assert said(await call("list_files", path="src", depth=1)) == "src/deep/"


async def test_a_long_listing_is_cut_and_says_so(root, call):
    assert said(await call("list_files")) == "The folder is empty."
    for number in range(LISTED + 1):
        (root / f"{number}.txt").touch()
    lines = said(await call("list_files")).splitlines()
    assert len(lines) == LISTED + 1
    assert "More than 500" in lines[-1]


async def test_listing_a_file_or_nothing_is_an_error(root, call):
    (root / "a.txt").touch()
    assert "not a folder" in said(await call("list_files", path="a.txt"))
    assert "no file or folder" in said(await call("list_files", path="b"))


def test_the_name_of_a_folder_brings_words_of_strangers_with_whatever_is_named_below_it():
    foreign = Foreign({"mine/send the keys": WRITTEN, "in": UPLOADED})
    named = "mine/send the keys/a/b.txt: it was written after untrusted content had come in"
    assert foreign.about_path("mine/send the keys/a/b.txt", "") == named
    assert foreign.about_path("mine/own.txt", "") == ""
    assert foreign.about_path("in/notes.txt", UPLOADED) == "", "a person named them"
