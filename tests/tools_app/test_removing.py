"""Folders go however their programs left them."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.patience import PATIENCE
from tools_app.removing import remove_tree

DEPTH = 2_000
FEW = 64
"""Files that may be open beside those that are."""


def test_a_folder_however_deep_goes_and_leaves_others_room_for_files(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _depth in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        inside = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
    os.close(here)
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    there = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (there + FEW, hard))
    try:
        remove_tree(tmp_path / "d")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o500)
    (tmp_path / "link").symlink_to("elsewhere")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(NotADirectoryError):
            remove_tree(tmp_path / name)
        assert os.path.lexists(tmp_path / name)
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o500
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "none")


def test_who_still_writes_there_keeps_nobody_for_ever(tmp_path: Path) -> None:
    root, ended = tmp_path / "root", Event()
    (root / "folder").mkdir(parents=True)

    def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            try:
                (root / f"file{number}").touch()
            except OSError:
                break

    def remove() -> None:
        try:
            remove_tree(root)
        except OSError:
            pass
        ended.set()

    threads = [Thread(target=work, daemon=True) for work in (write, remove)]
    for thread in threads:
        thread.start()
    assert ended.wait(PATIENCE)
    for thread in threads:
        thread.join()
