"""Snapshots of a workspace: kept by content, brought back as they were, never outside and never by a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tools_app import snapshots
from tools_app.confinement import open_file
from tools_app.leases import leased
from tools_app.snapshots import Damaged, Limits, NotKept, Store, store_of

PLENTY = Limits(files=1_000, size=1_000_000)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspaces" / "conv_1"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def old_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as untouched for long at once."""
    monkeypatch.setattr(snapshots, "RACY_NANOSECONDS", -1_000_000_000)


def keep(root: Path, limits: Limits = PLENTY) -> str:
    return Store(root).keep(limits).id


def back(root: Path, snapshot: str, **given: Any) -> snapshots.Changes:
    with leased(root) as lease:
        return Store(root).bring_back(snapshot, now=keep(root), lease=lease, **given)


def tree(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def fill(root: Path) -> None:
    (root / "a").mkdir()
    (root / "empty").mkdir()
    (root / "a" / "one.txt").write_text("one")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o700)
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("main")
    (root / "link").symlink_to("/etc/passwd")
    os.close(os.open(os.fsencode(root) + b"/\xff.bin", os.O_CREAT | os.O_WRONLY))


def test_everything_comes_back_as_it_was_and_what_came_since_goes(root: Path) -> None:
    fill(root)
    before, kept = tree(root), keep(root)
    (root / "a" / "one.txt").unlink()
    (root / "a").rmdir()
    (root / "a").write_text("a file now")
    (root / "run.sh").chmod(0o600)
    (root / "link").unlink()
    (root / "link").mkdir()
    (root / "link" / "in").write_text("in")
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "x").write_text("x")
    changed, there = keep(root), tree(root)
    assert back(root, kept) == snapshots.Changes(written=3, removed=3)
    assert tree(root) == before
    assert back(root, kept) == snapshots.Changes()
    back(root, changed)
    assert tree(root) == there


def test_only_the_files_that_are_named_come_back_and_some_stay(root: Path) -> None:
    (root / "one").write_text("1")
    (root / "two").write_text("1")
    kept = keep(root)
    for name in ("one", "two", "sent", "new"):
        (root / name).write_text("22")
    back(root, kept, only=["one", "new"])
    assert {path.name: path.read_text() for path in root.iterdir()} == {
        "one": "1",
        "two": "22",
        "sent": "22",
    }
    back(root, kept, stays=["sent"])
    assert sorted(path.name for path in root.iterdir()) == ["one", "sent", "two"]


def test_names_of_folders_and_links_come_with_their_source_where_they_are_new(root: Path) -> None:
    (root / "own").mkdir()
    (root / "obey" / "me").mkdir(parents=True)
    (root / "obey" / "me" / "x").write_text("x")
    (root / "own" / "link").symlink_to("obey")
    made = Store(root).keep(PLENTY, lambda found: "a page").id
    copy, part = root.parent / "conv_2", root.parent / "conv_3"
    copy.mkdir()
    (part / "obey").mkdir(parents=True)
    marks: dict[str, set[int]] = {}

    def mark(path: str, source: str, inode: int) -> None:
        assert source == "a page"
        marks.setdefault(path, set()).add(inode)

    with leased(copy) as lease:
        Store(copy, of=root).bring_back(made, now="", lease=lease, first=mark)
    names = ["obey", "obey/me", "obey/me/x", "own", "own/link"]
    assert marks == {name: {0, (copy / name).lstat().st_ino} for name in names}

    marks.clear()
    with leased(part) as lease:
        Store(part, of=root).bring_back(
            made, now="", lease=lease, only=["obey/me/x", "gone/x"], first=mark
        )
    assert sorted(marks) == ["obey/me", "obey/me/x"], "what stood there had its name before"


def test_a_link_is_never_followed_neither_to_keep_nor_to_bring_back(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (root / "folder").mkdir()
    (root / "folder" / "file").write_text("mine")
    kept = keep(root)
    (root / "folder" / "file").unlink()
    (root / "folder").rmdir()
    (root / "folder").symlink_to(outside)
    held = Store(root).items(keep(root))
    assert [(item.path, item.kind) for item in held] == [("folder", "link")]
    back(root, kept)
    assert (root / "folder" / "file").read_text() == "mine"
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]


def test_unchanged_files_are_not_read_again_and_changed_ones_are(
    root: Path, old_times: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    opened = open_file

    def watched(folder: int, name: str, path: str) -> int:
        read.append(path)
        return opened(folder, name, path)

    monkeypatch.setattr(snapshots, "open_file", watched)
    for name in ("one", "two"):
        (root / name).write_text("same size")
    keep(root)
    before = (root / "two").stat()
    (root / "two").write_text("SAME SIZE")
    os.utime(root / "two", ns=(before.st_atime_ns, before.st_mtime_ns))  # as a program may
    read.clear()
    kept = keep(root)
    assert read == ["two"]
    (root / "two").write_text("x")
    back(root, kept)
    assert (root / "two").read_text() == "SAME SIZE"


def test_a_file_changed_a_moment_ago_is_read_again_whatever_its_times_say(root: Path) -> None:
    (root / "one").write_text("a")
    keep(root)
    assert not Store(root)._index()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(2, 1_000), "too_many"), (Limits(10, 5), "too_large"), (Limits(1_000, 1), "too_deep")],
)
def test_what_is_too_much_is_not_kept_and_says_why(root: Path, limits, reason: str) -> None:
    if reason == "too_deep":
        (root / Path(*["d"] * (snapshots.DEPTH + 1))).mkdir(parents=True)
    else:
        for name in ("one", "two", "three"):
            (root / name).write_text("word")
    with pytest.raises(NotKept) as refused:
        keep(root, limits)
    assert refused.value.reason == reason


def test_each_content_is_kept_once_and_what_no_snapshot_names_goes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (root / name).write_text("same")
    first = keep(root)
    assert len(list(Store(root)._contents())) == 2  # one content, one list
    (root / "one").write_text("other")
    second = keep(root)
    monkeypatch.setattr(snapshots, "ORPHAN_SECONDS", -1)
    size = Store(root).size()
    Store(root).sweep([second])
    assert Store(root).size() < size
    with pytest.raises(Damaged):
        back(root, first)
    assert (root / "one").read_text() == "other"
    back(root, second)
    assert stat.S_IMODE(store_of(root).stat().st_mode) == 0o700


def test_content_that_is_not_what_its_name_says_is_not_brought_back(root: Path) -> None:
    (root / "one").write_text("right")
    kept = keep(root)
    (item,) = Store(root).items(kept)
    Store(root)._path_of(item.content).write_text("wrong")
    (root / "one").write_text("now")
    with pytest.raises(Damaged):
        back(root, kept)
    assert (root / "one").read_text() == "now"


def test_a_folder_that_lets_nobody_write_does_not_keep_its_files_from_coming_back(
    root: Path,
) -> None:
    (root / "folder").mkdir()
    (root / "folder" / "file").write_text("1")
    kept = keep(root)
    (root / "folder" / "file").write_text("2")
    (root / "folder").chmod(0o500)
    back(root, kept)
    assert (root / "folder" / "file").read_text() == "1"
    (root / "folder").chmod(0o700)
