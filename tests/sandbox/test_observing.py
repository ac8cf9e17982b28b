"""Watching from outside shows what is done below the folders that are watched, and nothing of others."""

from __future__ import annotations

import struct
from pathlib import Path

from sandbox.observing import FileWatch

A_FOLDER_WAS_MADE = 0x40000100


def made(watch: FileWatch, name: str) -> None:
    """As the kernel tells it, read late."""
    number = next(iter(watch._watched))
    watch._note(struct.pack("iIII16s", number, A_FOLDER_WAS_MADE, 0, 16, name.encode()))


def test_a_link_in_the_place_of_a_folder_shows_nothing_of_where_it_leads(tmp_path: Path):
    root, outside = tmp_path / "watched", tmp_path / "outside"
    (root / "inner").mkdir(parents=True)
    (outside / "deeper").mkdir(parents=True)
    (outside / "deeper" / "secret").write_text("x")
    watch = FileWatch({"here": root})
    with watch as seen:
        (root / "inner" / "own").write_text("x")
        (root / "swapped").symlink_to(outside)
        made(watch, "swapped")
        made(watch, "swapped/deeper")
        (outside / "deeper" / "secret").read_text()
    assert "here/inner/own" in seen.written
    assert not [name for name in seen.read if "secret" in name]
    assert seen.whole
