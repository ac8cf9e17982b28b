"""A workspace has one limit, at which everybody who would fill it is told what to do."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import TooLarge
from tools_app import quota
from tools_app.workspace import Workspace

MB = 1024 * 1024


@pytest.fixture
def root(tmp_path: Path, settings) -> Path:
    settings.AGENTSITE_WORKSPACE_MEGABYTES = 2
    return tmp_path


def test_files_are_stored_up_to_the_limit_and_not_one_past_it(root: Path):
    workspace = Workspace(root)
    workspace.write_bytes("a", b"x" * MB)
    workspace.write_bytes("b", b"x" * (MB // 2))
    with pytest.raises(TooLarge) as refusal:
        workspace.write_bytes("c", b"x" * MB)
    assert "The workspace is full: it holds 1.5 of 2 MB." in refusal.value.message
    assert "Remove files" in refusal.value.hint
    assert sorted(path.name for path in root.iterdir()) == ["a", "b"]


def test_an_upload_that_does_not_fit_leaves_nothing_behind(root: Path):
    workspace = Workspace(root)
    workspace.write_bytes("a", b"x" * MB)
    with pytest.raises(TooLarge, match="workspace is full"):
        workspace.save_upload("b", iter([b"x" * MB, b"x" * MB]))
    assert [path.name for path in root.iterdir()] == ["a"]


def test_what_is_removed_makes_room_at_once(root: Path):
    workspace = Workspace(root)
    workspace.write_bytes("a", b"x" * MB)
    workspace.write_bytes("b", b"x" * (MB // 2))
    workspace.remove("a")
    workspace.write_bytes("c", b"x" * MB)


def test_what_others_put_there_counts(root: Path):
    workspace = Workspace(root)
    (root / "big").write_bytes(b"x" * (2 * MB))
    with pytest.raises(TooLarge):
        workspace.write_bytes("a", b"x")


def test_without_a_limit_there_is_none(root: Path, settings):
    settings.AGENTSITE_WORKSPACE_MEGABYTES = 0
    Workspace(root).write_bytes("a", b"x" * (3 * MB))
    assert quota.limit_megabytes(4096) == 4096


def test_a_policy_may_ask_for_less_and_not_for_more(root: Path):
    assert quota.limit_megabytes(1) == 1
    assert quota.limit_megabytes(4096) == 2


@pytest.mark.parametrize("how", ["uploads", "writes"])
def test_many_at_once_store_no_more_than_fits(root: Path, how: str):
    """Each asks for room that there is for two of them."""
    start = threading.Barrier(6)

    def store(number: int) -> bool:
        start.wait()
        try:
            if how == "writes":
                Workspace(root).write_bytes(f"{number}", b"x" * (MB * 3 // 4))
            else:
                pieces = iter([b"x" * (MB // 4)] * 3)
                Workspace(root).save_upload(f"{number}", pieces)
        except TooLarge:
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        stored = list(threads.map(store, range(6)))
    held = sum(path.stat().st_size for path in root.iterdir())
    assert held <= 2 * MB
    assert held == sum(stored) * (MB * 3 // 4)
    assert any(stored)


def test_room_that_another_process_took_is_known_without_measuring_again(root: Path, monkeypatch):
    Workspace(root).write_bytes("a", b"x" * MB)
    monkeypatch.setattr(quota, "measure", None)
    Workspace(root).write_bytes("b", b"x" * (MB // 2))
