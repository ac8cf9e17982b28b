"""Traversal, NUL and links are refused for reading and writing, even when swapped in time."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import AgentError, Declined, Invalid, NotFound
from tests.heartbeat import seconds_of_work
from tests.hostile import marks
from tests.properties import examples
from tools_app.confinement import DEPTH_LIMIT, NAME_LIMIT, PATH_LIMIT, parse_path, shown
from tools_app.leases import FOLDER as LEASES
from tools_app.workspace import Workspace

SECRET = "what nobody may read"

Use = Callable[[Workspace, str], Any]

USES: dict[str, Use] = {
    "read": lambda workspace, path: workspace.read_bytes(path),
    "open": lambda workspace, path: workspace.open_for_read(path).close(),
    "preview": lambda workspace, path: workspace.preview(path),
    "write": lambda workspace, path: workspace.write_bytes(path, b"overwritten"),
}
EVERY_USE: dict[str, Use] = {
    **USES,
    "stat": lambda workspace, path: workspace.stat(path),
    "remove": lambda workspace, path: workspace.remove(path),
    "walk": lambda workspace, path: list(workspace.walk(path)),
}


def every(uses: dict[str, Use]) -> Any:
    return pytest.mark.parametrize("use", uses.values(), ids=uses.keys())


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a.txt", ("a.txt",)),
        ("./a//b/./c.txt", ("a", "b", "c.txt")),
        ("a/../b.txt", ("b.txt",)),
        ("", ()),
        (".", ()),
        ("..\\..\\a.txt", ("..\\..\\a.txt",)),
        ("C:\\a.txt", ("C:\\a.txt",)),
        ("~/a.txt", ("~", "a.txt")),
        ("...", ("...",)),
        ("%2e%2e/a", ("%2e%2e", "a")),
    ],
)
def test_a_path_is_read_as_names_below_the_root(path, parts):
    assert parse_path(path) == parts


@every(EVERY_USE)
@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "..",
        "/etc/passwd",
        "//etc/passwd",
        "a\0.txt",
        "\0",
        "x" * (NAME_LIMIT + 1),
        "é" * (NAME_LIMIT // 2 + 1),
        "/".join(["d"] * (DEPTH_LIMIT + 1)),
        "a/" * (PATH_LIMIT // 2) + "b",
        "bad\udcff.txt",
        ".git/config",
        "src/.git/config",
        "src/.GIT/config",
        ".agentsite/notes",
        ".agentsite-0123",
    ],
)
def test_a_forbidden_path_is_refused_by_every_door(root, outside, workspace, use, path):
    before = sorted(root.parent.rglob("*"))
    with pytest.raises(Invalid) as caught:
        use(workspace, path)
    assert caught.value.field == "path"
    assert str(root.parent) not in caught.value.message + caught.value.hint
    assert sorted(root.parent.rglob("*")) == before
    assert (outside / "secret.txt").read_text() == SECRET


def test_names_as_long_and_paths_as_deep_as_allowed_are_taken(workspace):
    path = "/".join(["d"] * (DEPTH_LIMIT - 1) + ["x" * NAME_LIMIT])
    workspace.write_bytes(path, b"far down")
    assert workspace.read_bytes(path) == b"far down"
    assert [entry.path for entry in workspace.entries().entries] == [path]


@every(USES)
@pytest.mark.parametrize("target", ["outside", "dangling", "inside", "itself"], ids="to {}".format)
def test_a_link_as_the_last_name_is_refused(root, outside, workspace, use, target):
    (root / "real.txt").write_text("real")
    targets = {
        "outside": outside / "secret.txt",
        "dangling": outside / "new.txt",
        "inside": Path("real.txt"),
        "itself": Path("link"),
    }
    (root / "link").symlink_to(targets[target])
    with pytest.raises(Invalid, match="symbolic link"):
        use(workspace, "link")
    assert not (outside / "new.txt").exists()
    assert (outside / "secret.txt").read_text() == SECRET
    assert (root / "real.txt").read_text() == "real"
    assert (root / "link").is_symlink()


@every(EVERY_USE)
@pytest.mark.parametrize("target", ["../outside", "real"])
def test_a_link_on_the_way_is_refused(root, outside, workspace, use, target):
    (root / "real").mkdir()
    (root / "real" / "secret.txt").write_text("real")
    (root / "link").symlink_to(target)
    with pytest.raises(Invalid, match="symbolic link"):
        use(workspace, "link/secret.txt")
    with pytest.raises(Invalid, match="symbolic link"):
        use(workspace, "link/new/file.txt")
    assert sorted(path.name for path in outside.iterdir()) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET


def test_removing_a_link_removes_the_link_and_not_what_it_stands_for(root, outside, workspace):
    (root / "link").symlink_to(outside / "secret.txt")
    workspace.remove("link")
    assert not (root / "link").is_symlink()
    assert (outside / "secret.txt").read_text() == SECRET


def test_a_root_that_is_a_link_is_no_workspace(root, outside):
    (root.parent / "alias").symlink_to(outside)
    with pytest.raises(NotFound):
        Workspace(root.parent / "alias").read_bytes("secret.txt")


@every(USES)
def test_pipes_sockets_and_folders_are_refused_at_once(root, workspace, use):
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(Invalid, match="pipe, socket or device"):
                use(workspace, name)
    with pytest.raises(Invalid, match="is a folder"):
        use(workspace, "folder")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@every(USES)
def test_a_device_is_refused(root, workspace, use):
    os.mknod(root / "null", 0o600 | 0o020000, os.makedev(1, 3))
    with pytest.raises(Invalid, match="pipe, socket or device"):
        use(workspace, "null")


def test_a_write_never_goes_through_a_hard_link(root, outside, workspace):
    os.link(outside / "secret.txt", root / "same.txt")
    workspace.write_bytes("same.txt", b"mine")
    assert (root / "same.txt").read_bytes() == b"mine"
    assert (outside / "secret.txt").read_text() == SECRET


class Swapping:
    """Turns a name of the workspace into a link and back, as fast as it can."""

    def __init__(self, place: Path, target: Path) -> None:
        self._place, self._target = place, target
        self._aside, self._link = place.with_name("aside"), place.with_name("prepared")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._swap)

    def __enter__(self) -> Swapping:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _swap(self) -> None:
        while not self._over.is_set():
            try:
                self._link.symlink_to(self._target)
                self._place.rename(self._aside)
                self._link.rename(self._place)
                self._place.unlink()
                self._aside.rename(self._place)
            except OSError:
                with suppress(OSError):
                    self._recover()

    def _recover(self) -> None:
        """The other side made the place anew while it was away: throw that away."""
        self._link.unlink(missing_ok=True)
        if self._aside.exists():
            if self._place.is_dir() and not self._place.is_symlink():
                shutil.rmtree(self._place)
            self._place.unlink(missing_ok=True)
            self._aside.rename(self._place)


def tried(use: Callable[[], Any], *, enough: int) -> list[Any]:
    """The results of a use in a race, until it went well and was refused often enough."""
    results: list[Any] = []
    refused = 0
    for _ in range(50_000):
        try:
            results.append(use())
        except Declined:
            refused += 1
            # So quick that it may fall within one swap, again and again.
            time.sleep(0.000_05)
        if len(results) >= enough and refused >= enough:
            return results
    raise AssertionError(f"no race: {len(results)} went well, {refused} were refused")


def test_a_folder_swapped_for_a_link_during_reads_never_leads_outside(root, outside, workspace):
    (root / "folder").mkdir()
    (root / "folder" / "secret.txt").write_text("harmless")
    with Swapping(root / "folder", outside):
        results = tried(lambda: workspace.read_bytes("folder/secret.txt"), enough=100)
    assert set(results) == {b"harmless"}


def test_a_file_swapped_for_a_link_during_reads_never_leads_outside(root, outside, workspace):
    (root / "file.txt").write_text("harmless")
    with Swapping(root / "file.txt", outside / "secret.txt"):
        results = tried(lambda: workspace.read_bytes("file.txt"), enough=100)
    assert set(results) == {b"harmless"}


@pytest.mark.parametrize("swapped_for", ["link", "pipe"])
def test_a_file_swapped_between_the_look_and_the_opening_is_refused(
    root, outside, workspace, monkeypatch, swapped_for
):
    (root / "file.txt").write_text("harmless")
    look = os.stat

    def look_then_swap(name: Any, **options: Any) -> os.stat_result:
        status = look(name, **options)
        if name == "file.txt":
            (root / "file.txt").unlink()
            if swapped_for == "link":
                (root / "file.txt").symlink_to(outside / "secret.txt")
            else:
                os.mkfifo(root / "file.txt")
        return status

    monkeypatch.setattr(os, "stat", look_then_swap)
    with pytest.raises(Invalid):
        workspace.read_bytes("file.txt")


def test_a_folder_swapped_for_a_link_during_writes_never_leads_outside(root, outside, workspace):
    (root / "folder").mkdir()
    with Swapping(root / "folder", outside):
        tried(lambda: workspace.write_bytes("folder/secret.txt", b"overwritten"), enough=20)
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET


PIECES = st.sampled_from(
    "..|.||/|//|link|dangling|folder|secret.txt|outside|workspace|\\|\0|~|.git|%2e%2e|．．|‥|a|*|$HOME"
    f"|{'x' * 300}|\udcff".split("|")
)
PATHS = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=8).map("/".join))


@settings(
    max_examples=examples(400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(path=PATHS, name=st.sampled_from(sorted(EVERY_USE)))
def test_no_path_whatever_reaches_outside(root, outside, path, name):
    for link, target in (("link", "../outside"), ("dangling", "../outside/new.txt")):
        if not (root / link).is_symlink() and not (root / link).exists():
            (root / link).symlink_to(target)
    workspace = Workspace(root)
    try:
        told = repr(EVERY_USE[name](workspace, path))
    except AgentError as problem:
        told = problem.message + problem.hint
    assert SECRET not in told
    assert str(root.parent) not in told
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET
    assert {path.name for path in root.parent.iterdir()} - {LEASES} == {"outside", "workspace"}


def test_names_are_shown_in_one_line_without_deceiving_characters():
    assert shown("a\nb\x1b[31m\u202etxt.exe") == "a\\nb\\x1b[31m\\u202etxt.exe"
    assert shown("e\u0301") == "é"
    assert len(shown("x" * 1_000)) == 301


def test_two_names_that_only_look_the_same_are_two_files(workspace):
    workspace.write_bytes("e\u0301", b"decomposed")
    workspace.write_bytes("\u00e9", b"composed")
    assert workspace.read_bytes("e\u0301") == b"decomposed"
    assert workspace.read_bytes("\u00e9") == b"composed"


@pytest.mark.parametrize("path", [marks(40_000), "e\u0301" * 2_000_000], ids=["marks", "long"])
def test_a_name_is_shown_at_once_however_it_is_made(path: str) -> None:
    assert seconds_of_work(lambda: shown(path)) < 0.01
    assert len(shown(path)) == 301
    assert shown(path).endswith("…")
