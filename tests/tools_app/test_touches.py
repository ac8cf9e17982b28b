"""What a call would touch is told at once, or left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.heartbeat import seconds_of_work
from tests.hostile import marks
from tools_app.touches import LARGEST, touched_by


def test_the_host_of_an_address_is_told():
    told = touched_by("conv_1", "web_fetch", {"url": "https://a.example/x"})

    assert told == {"kind": "address", "url": "https://a.example/x", "host": "a.example"}


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (f"http://{marks(40_000)}/", "address"),
        (f"http://{marks(2_000)}/", "unknown"),
        ("http://a.example/" + "x" * 3_900_000, "address"),
    ],
    ids=["marks", "few marks", "megabytes"],
)
def test_an_address_that_is_dear_to_read_has_no_host(url: str, kind: str):
    told: list[dict[str, Any]] = []

    spent = seconds_of_work(lambda: told.append(touched_by("conv_1", "web_fetch", {"url": url})))

    assert spent < 0.005
    assert told[0]["kind"] == kind
    assert not told[0].get("host")


@pytest.fixture
def path(settings, tmp_path: Path) -> Path:
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path
    (tmp_path / "conv_1").mkdir()
    return tmp_path / "conv_1" / "a.txt"


def test_a_change_of_a_file_is_told_line_by_line(path: Path):
    path.write_text("one\ntwo\n")
    given = {"path": "a.txt", "old_text": "two", "new_text": "2"}

    told = touched_by("conv_1", "edit_file", given)

    assert told["kind"] == "diff"
    assert "-two\n+2\n" in told["diff"]


@pytest.mark.parametrize("tool", ["edit_file", "write_file"])
def test_of_a_file_that_is_long_only_the_path_is_told(path: Path, tool: str):
    path.write_text("one\n" + "x" * LARGEST)
    given = {"path": "a.txt", "old_text": "one", "new_text": "2", "content": "2"}

    assert touched_by("conv_1", tool, given) == {"kind": "path", "path": "a.txt"}


def test_of_a_change_that_is_long_only_the_path_is_told(path: Path):
    path.write_text("one\n")
    for given in ({"content": "x" * (LARGEST + 1)}, {"content": "x", "old_text": "x" * 5_000_000}):
        told = touched_by("conv_1", "write_file", {"path": "a.txt", **given})
        assert told == {"kind": "path", "path": "a.txt"}


def test_of_a_text_that_repeats_itself_one_place_is_not_told(path: Path):
    path.write_text("a" * 100_000)
    given = {"path": "a.txt", "old_text": "a" * 50_000, "new_text": "b"}

    assert touched_by("conv_1", "edit_file", given) == {"kind": "path", "path": "a.txt"}


def test_lines_that_take_long_to_match_are_told_as_one_block(path: Path):
    old, new = ("".join(f"{n % 50}\n{word} {n}\n" for n in range(800)) for word in ("old", "new"))
    path.write_text(old)

    told = touched_by("conv_1", "write_file", {"path": "a.txt", "content": new})

    assert (told["added"], told["removed"]) == (1_599, 1_599)
