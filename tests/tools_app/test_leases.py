"""Who changes a workspace keeps others out, says so to them, and never beyond its own life."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import Conflict
from tests.patience import PATIENCE
from tools_app import leases
from tools_app.workspace import Workspace

HOLDER = """
import sys
from pathlib import Path
from tools_app.workspace import Workspace
import django.conf; django.conf.settings.configure(AGENTSITE_WORKSPACE_MEGABYTES=0, USE_I18N=False)
from harness.errors import Conflict
workspace = Workspace(Path(sys.argv[1]))
with workspace.exclusive() as lease:
    print("held", flush=True)
    sys.stdin.readline()
    try:
        workspace.write_bytes("a", b"late", lease=lease)
    except Conflict as refusal:
        print(refusal.message, flush=True)
"""


@pytest.fixture
def holder(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_second_writer_is_told_that_the_workspace_is_busy(tmp_path, holder, monkeypatch):
    monkeypatch.setattr(leases, "WAIT_SECONDS", 0.2)
    with pytest.raises(Conflict) as refusal, Workspace(tmp_path).exclusive():
        pass
    assert "being changed by somebody else" in refusal.value.message
    assert "Try again" in refusal.value.hint


def test_a_lease_left_by_a_dead_process_is_free_again(tmp_path, holder):
    """Killed without a goodbye, it blocks nobody."""
    holder.send_signal(signal.SIGKILL)
    holder.wait(PATIENCE)
    with Workspace(tmp_path).exclusive() as lease:
        Workspace(tmp_path).write_bytes("a", b"mine", lease=lease)
    assert (tmp_path / "a").read_bytes() == b"mine"


def test_who_hangs_is_taken_over_and_a_late_write_changes_nothing(tmp_path, holder):
    """The lease has an end of its own, and its holder's work is shown only while it holds it."""
    holder.send_signal(signal.SIGSTOP)
    let_it_grow_old(tmp_path)
    workspace = Workspace(tmp_path)
    workspace.write_bytes("a", b"mine")
    holder.send_signal(signal.SIGCONT)
    holder.stdin.write("go on\n")
    holder.stdin.flush()
    assert "somebody else changes the workspace by now" in holder.stdout.readline()
    assert (tmp_path / "a").read_bytes() == b"mine"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_holder_in_time_keeps_its_lease_and_writes(tmp_path, holder):
    holder.stdin.write("go on\n")
    holder.stdin.flush()
    holder.wait(PATIENCE)
    assert (tmp_path / "a").read_bytes() == b"late"


def let_it_grow_old(root: Path) -> None:
    """The lease is as old as if its holder had hung for an hour."""
    path = root.parent / leases.FOLDER / root.name
    long_ago = path.stat().st_mtime - 3_600
    os.utime(path, (long_ago, long_ago))


def test_a_renewed_lease_is_not_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "WAIT_SECONDS", 0.1)
    with Workspace(tmp_path).exclusive() as lease:
        let_it_grow_old(tmp_path)
        lease.renew()
        with pytest.raises(Conflict), Workspace(tmp_path).exclusive():
            pass
        let_it_grow_old(tmp_path)
        with Workspace(tmp_path).exclusive():
            pass


def test_of_many_that_take_over_at_once_one_holds_the_lease(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "WAIT_SECONDS", 0.1)
    inside: list[int] = []
    worst: list[int] = []

    def change(number: int) -> str:
        try:
            with Workspace(tmp_path).exclusive():
                inside.append(number)
                worst.append(len(inside))
                time.sleep(0.15)
                inside.remove(number)
                return "held"
        except Conflict:
            return "busy"

    with Workspace(tmp_path).exclusive() as hung:
        let_it_grow_old(tmp_path)
        with ThreadPoolExecutor(8) as threads:
            results = list(threads.map(change, range(8)))
        assert "held" in results
        assert max(worst) == 1
        with pytest.raises(Conflict), hung.committing():
            pass


def test_the_lease_goes_with_its_workspace(tmp_path):
    root = tmp_path / "w"
    root.mkdir()
    with Workspace(root).exclusive() as lease:
        leases.forget(root)
        with pytest.raises(Conflict), lease.committing():
            pass
    assert not list((tmp_path / leases.FOLDER).glob("w"))
