"""Each conversation's files, uploads, listings and previews."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import Conflict, Invalid, NotFound, TooLarge
from tests.properties import examples
from tools_app import leases
from tools_app import workspace as module
from tools_app.workspace import (
    EPOCH,
    PREVIEW_LIMIT,
    UPLOAD_LIMIT,
    Workspace,
    entry_of,
    remove_workspace,
    workspace_for,
)


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.fixture
def workspaces(tmp_path: Path, settings) -> Path:
    settings.AGENTSITE_WORKSPACES_DIR = directory = tmp_path / "all"
    return directory


# --- one directory for each conversation ----------------------------------------------------------


def test_the_files_of_one_conversation_are_unseen_and_undeletable_from_another(workspaces):
    alices = Workspace(workspace_for("sesn_alice"))
    mallorys = Workspace(workspace_for("sesn_mallory"))
    alices.write_bytes("plan.md", b"secret plan")
    assert mallorys.entries().entries == ()
    for path in ("plan.md", "../sesn_alice/plan.md"):
        for use in (mallorys.read_bytes, mallorys.remove, mallorys.preview, mallorys.stat):
            with pytest.raises((NotFound, Invalid)):
                use(path)
    remove_workspace("sesn_mallory")
    assert alices.read_bytes("plan.md") == b"secret plan"


def test_a_workspace_is_its_owners_only_and_made_once(workspaces):
    first = workspace_for("sesn_1")
    (first / "kept.txt").write_text("kept")
    assert workspace_for("sesn_1") == first
    assert (first / "kept.txt").exists()
    assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert stat.S_IMODE(workspaces.stat().st_mode) == 0o700


@pytest.mark.parametrize("uid", ["", ".", "..", "a/b", "../x", "a\0", "-x", "x" * 101, "a\n"])
def test_only_an_id_names_a_workspace(workspaces, uid):
    for use in (workspace_for, remove_workspace):
        with pytest.raises(Invalid):
            use(uid)


def test_removing_a_workspace_leaves_what_its_links_stand_for(workspaces, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    (workspace_for("sesn_1") / "link").symlink_to(tmp_path / "precious")
    remove_workspace("sesn_1")
    remove_workspace("sesn_1")
    assert not (workspaces / "sesn_1").exists()
    assert (tmp_path / "precious" / "file").read_text() == "kept"


# --- writing --------------------------------------------------------------------------------------


def test_a_write_makes_folders_and_is_readable_by_the_owner_only(root, workspace):
    entry = workspace.write_bytes("a/b/c.txt", b"content")
    assert (entry.path, entry.kind, entry.size) == ("a/b/c.txt", "file", 7)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "a/b/c.txt").stat().st_mode) == 0o600


def test_a_program_stays_a_program_when_it_is_rewritten(root, workspace):
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o755)
    workspace.write_bytes("run.sh", b"new")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o700


def test_a_failed_write_leaves_the_old_file_and_nothing_else(root, workspace):
    workspace.write_bytes("a.txt", b"old")
    with pytest.raises(TooLarge):
        workspace.write_bytes("a.txt", b"x" * 11, limit=10)
    assert workspace.read_bytes("a.txt") == b"old"
    assert names(root) == ["a.txt"]


def test_a_reader_sees_the_old_or_the_new_file_and_never_a_part(workspace):
    versions = {bytes([65 + n]) * 200_000 for n in range(2)}
    workspace.write_bytes("a.txt", next(iter(versions)))
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            for version in versions:
                workspace.write_bytes("a.txt", version)

    writer = threading.Thread(target=write)
    writer.start()
    seen = {workspace.read_bytes("a.txt") for _ in range(200)}
    over.set()
    writer.join()
    assert seen <= versions


def test_reading_stops_at_the_limit_and_not_one_past_it(workspace):
    workspace.write_bytes("a.txt", b"x" * 10)
    assert workspace.read_bytes("a.txt", limit=10) == b"x" * 10
    with pytest.raises(TooLarge):
        workspace.read_bytes("a.txt", limit=9)


def test_a_path_that_ends_with_a_slash_names_no_file(root, workspace):
    with pytest.raises(Invalid, match="folder"):
        workspace.write_bytes("notes/", b"x")
    assert names(root) == []


def test_a_file_in_the_place_of_a_folder_is_named(workspace):
    workspace.write_bytes("a", b"x")
    with pytest.raises(Invalid, match="“a” is a file, not a folder"):
        workspace.write_bytes("a/b.txt", b"x")


def test_a_lost_workspace_is_said_to_be_gone_with_the_files(tmp_path):
    with pytest.raises(NotFound, match="workspace is gone from this server") as refusal:
        Workspace(tmp_path / "lost").stat("a.txt")
    assert "backup" in refusal.value.words


def test_a_missing_file_is_not_found_by_its_name(workspace):
    workspace.write_bytes("a/c", b"")
    for use in (workspace.read_bytes, workspace.stat, workspace.preview, workspace.remove):
        with pytest.raises(NotFound, match="file or folder “a/b”"):
            use("a/b")


def test_removing_a_file_removes_it_and_a_folder_is_refused(root, workspace):
    workspace.write_bytes("a/b.txt", b"x")
    with pytest.raises(Invalid, match="folder"):
        workspace.remove("a")
    workspace.remove("a/b.txt")
    assert names(root) == ["a"]


def test_only_one_holder_at_a_time_changes_a_workspace(root, workspace, monkeypatch):
    monkeypatch.setattr(leases, "WAIT_SECONDS", 0.05)
    with workspace.exclusive(), pytest.raises(Conflict), Workspace(root).exclusive():
        pass
    with Workspace(root).exclusive():
        pass


# --- uploads --------------------------------------------------------------------------------------


def chunks(size: int, piece: int = 64 * 1024) -> Iterator[bytes]:
    while size > 0:
        yield b"x" * min(piece, size)
        size -= piece


def test_an_upload_of_just_the_limit_is_stored(root, workspace):
    entry = workspace.save_upload("data.bin", chunks(UPLOAD_LIMIT))
    assert (entry.path, entry.size) == ("data.bin", 10 * 1024 * 1024)
    assert stat.S_IMODE((root / "data.bin").stat().st_mode) == 0o600
    assert (root / "data.bin").stat().st_nlink == 1


def test_an_upload_one_byte_past_the_limit_leaves_nothing_behind(root, workspace):
    with pytest.raises(TooLarge) as caught:
        workspace.save_upload("data.bin", chunks(UPLOAD_LIMIT + 1))
    assert caught.value.code == "too_large"
    assert "data.bin" in caught.value.message
    assert names(root) == []


def test_an_upload_is_not_read_further_than_its_limit(root, workspace):
    given = 0

    def endless() -> Iterator[bytes]:
        nonlocal given
        while True:
            given += 1
            yield b"x" * 100

    with pytest.raises(TooLarge):
        workspace.save_upload("a", endless(), limit=1_000)
    assert given == 11
    assert names(root) == []


def test_an_upload_that_breaks_off_leaves_nothing_behind(root, workspace):
    def broken() -> Iterator[bytes]:
        yield b"first"
        raise ConnectionResetError

    with pytest.raises((Invalid, ConnectionResetError)):
        workspace.save_upload("a.txt", broken())
    assert names(root) == []


def test_the_number_of_an_upload_is_told_as_it_is_known_later(workspace, monkeypatch):
    """Some file systems give numbers that no table can keep."""
    look, told = os.stat, []

    def look_far_up(*given: Any, **more: Any) -> Any:
        reduced: Any = look(*given, **more).__reduce__()
        kind, (fields, others) = reduced
        if "dir_fd" not in more:  # of a lease
            return kind(fields, others)
        return kind((fields[0], fields[1] | 2**63, *fields[2:]), others)

    monkeypatch.setattr(os, "stat", look_far_up)
    entry = workspace.save_upload("a.txt", [b"x"], first=lambda *found: told.append(found))
    assert told == [("a.txt", entry.inode)]
    assert entry.inode < 2**63


@pytest.mark.parametrize(
    "name", ["../../secret.txt", "/etc/secret.txt", "C:\\Users\\me\\secret.txt", "a/secret.txt"]
)
def test_the_folders_of_an_uploads_name_are_dropped(root, workspace, name):
    assert workspace.save_upload(name, [b"x"]).path == "secret.txt"
    assert names(root) == ["secret.txt"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/", "/", " ", ".git", ".agentsite", "a\0b", "x" * 256, "\udcff"]
)
def test_an_upload_without_a_usable_name_is_refused(root, workspace, name):
    with pytest.raises(Invalid):
        workspace.save_upload(name, [b"x"])
    assert names(root) == []


def test_an_upload_never_replaces_what_has_its_name(root, workspace):
    stored = [workspace.save_upload("a.tar.gz", [bytes([n])]).path for n in range(3)]
    assert stored == ["a.tar.gz", "a.tar (2).gz", "a.tar (3).gz"]
    assert [workspace.read_bytes(path) for path in stored] == [b"\0", b"\1", b"\2"]
    assert [workspace.save_upload(".env", [b"x"]).path for _ in range(2)] == [".env", ".env (2)"]
    (root / "link").symlink_to("nowhere")
    assert workspace.save_upload("link", [b"x"]).path == "link (2)"


def test_a_numbered_name_still_fits(workspace):
    name = "é" * 125 + ".txt"
    workspace.save_upload(name, [b"1"])
    second = workspace.save_upload(name, [b"2"]).path
    assert second.endswith(" (2).txt")
    assert len(second.encode()) <= 255
    assert workspace.read_bytes(second) == b"2"


def test_many_uploads_of_one_name_at_once_are_all_kept(root, workspace):
    start = threading.Barrier(8)

    def upload(number: int) -> None:
        start.wait()
        workspace.save_upload("a.txt", [str(number).encode()])

    threads = [threading.Thread(target=upload, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.read_text() for path in root.iterdir()) == [str(n) for n in range(8)]


@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(name=st.text(max_size=30))
def test_an_upload_of_any_name_lands_in_the_root_or_is_refused(root, name):
    before = len(names(root))
    try:
        entry = Workspace(root).save_upload(name, [b"x"])
    except Invalid:
        assert len(names(root)) == before
    else:
        assert (root / entry.path).parent == root
        assert len(names(root)) == before + 1
    beside = {path.name for path in root.parent.iterdir()}
    assert beside - {leases.FOLDER} == {"outside", "workspace"}


# --- listing --------------------------------------------------------------------------------------


def test_reserved_names_are_hidden_at_every_depth(root, workspace):
    for path in (".git/config", "src/.git/x", "src/deep/.agentsite/x", "src/.GIT/x"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("hidden")
    (root / "src/.agentsite-0a").write_text("half written")
    (root / "src/.gitignore").write_text("shown")
    assert [entry.path for entry in workspace.entries().entries] == ["src/.gitignore"]
    assert [entry.path for entry in workspace.walk()] == ["src", "src/.gitignore", "src/deep"]
    assert workspace.usage().files == 6


def test_a_listing_is_flat_with_sizes_and_times_and_follows_no_link(root, outside, workspace):
    workspace.write_bytes("b.txt", b"12345")
    workspace.write_bytes("a/c.txt", b"1")
    os.utime(root / "b.txt", (1_000_000_000, 1_000_000_000))
    (root / "link").symlink_to(outside)
    (root / "linked.txt").symlink_to(outside / "secret.txt")
    listing = workspace.entries()
    assert [(entry.path, entry.size) for entry in listing.entries] == [("a/c.txt", 1), ("b.txt", 5)]
    assert listing.complete
    assert listing.entries[1].modified.isoformat() == "2001-09-09T01:46:40+00:00"
    kinds = {entry.path: entry.kind for entry in workspace.walk()}
    assert kinds == {
        "a": "folder",
        "a/c.txt": "file",
        "b.txt": "file",
        "link": "link",
        "linked.txt": "link",
    }


def test_a_listing_says_when_there_is_more_than_it_shows(workspace):
    for number in range(4):
        workspace.write_bytes(f"{number}.txt", b"")
    assert workspace.entries(limit=4).complete
    short = workspace.entries(limit=3)
    assert len(short.entries) == 3
    assert not short.complete


def test_a_walk_ends_at_its_limit_and_says_so(workspace, monkeypatch):
    for number in range(4):
        workspace.write_bytes(f"d/{number}.txt", b"")
    monkeypatch.setattr(module, "WALK_LIMIT", 5)
    assert len(list(workspace.walk())) == 5
    assert workspace.entries().complete
    monkeypatch.setattr(module, "WALK_LIMIT", 4)
    with pytest.raises(TooLarge):
        list(workspace.walk())
    assert not workspace.entries().complete
    assert not workspace.usage().complete


def test_a_walk_goes_as_deep_as_asked_and_not_into_skipped_folders(workspace):
    workspace.write_bytes("a/b/c.txt", b"")
    workspace.write_bytes("node_modules/x/y.js", b"")
    assert [entry.path for entry in workspace.walk(depth=1)] == ["a", "node_modules"]
    assert [entry.path for entry in workspace.walk(skip={"node_modules"})] == [
        "a",
        "a/b",
        "a/b/c.txt",
        "node_modules",
    ]
    assert [entry.path for entry in workspace.walk("a/b")] == ["a/b/c.txt"]


def test_a_name_that_is_no_text_does_not_break_a_listing(root, workspace):
    (root / os.fsdecode(b"bad\xff")).write_text("x")
    workspace.write_bytes("good.txt", b"")
    assert [entry.path for entry in workspace.entries().entries] == ["good.txt"]


@pytest.mark.parametrize("moment", [2**40, -(2**40), 253402300800, -62135596801, 2**62])
def test_a_file_with_a_time_that_no_calendar_has_is_listed_as_any_other(moment):
    """Commands give their files whatever time they want, and some file systems keep it."""
    status = os.stat_result((stat.S_IFREG | 0o600, 7, 0, 1, 0, 0, 3, moment, moment, moment))
    entry = entry_of("a.txt", status)
    assert (entry.path, entry.kind, entry.size, entry.modified) == ("a.txt", "file", 3, EPOCH)


def test_usage_counts_files_and_bytes(workspace):
    workspace.write_bytes("a.txt", b"123")
    workspace.write_bytes("b/c.txt", b"4567")
    usage = workspace.usage()
    assert (usage.files, usage.size, usage.complete) == (2, 7, True)


# --- previews -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "language"),
    [("app.py", "python"), ("a.ts", "typescript"), ("Makefile", "make"), ("x.unknown", "text")],
)
def test_a_preview_names_the_language(workspace, name, language):
    workspace.write_bytes(name, "x = 'é'\n".encode())
    preview = workspace.preview(name)
    assert (preview.text, preview.language) == ("x = 'é'\n", language)
    assert (preview.truncated, preview.binary) == (False, False)
    assert preview.entry.path == name


@pytest.mark.parametrize("letter", ["x", "é", "💡"])
def test_a_preview_is_cut_at_its_limit_and_marked(workspace, letter):
    workspace.write_bytes("whole.txt", (letter * PREVIEW_LIMIT).encode())
    assert workspace.preview("whole.txt").text == letter * 102_400
    assert not workspace.preview("whole.txt").truncated
    workspace.write_bytes("longer.txt", (letter * (PREVIEW_LIMIT + 1)).encode())
    assert workspace.preview("longer.txt").text == letter * 102_400
    assert workspace.preview("longer.txt").truncated


def test_a_long_file_cut_inside_a_character_is_still_text(workspace):
    workspace.write_bytes("a.txt", ("x" + "é" * 3 * PREVIEW_LIMIT).encode())
    preview = workspace.preview("a.txt")
    assert not preview.binary
    assert preview.truncated
    assert len(preview.text) == PREVIEW_LIMIT


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"a\0b", bytes(range(256))])
def test_a_binary_file_is_flagged(workspace, data):
    workspace.write_bytes("picture.png", data)
    preview = workspace.preview("picture.png")
    assert preview.binary
    assert preview.text == ""
