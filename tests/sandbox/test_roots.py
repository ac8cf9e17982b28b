"""What of the host a policy may open: only what the operator names, and never the server's own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from harness.errors import Invalid
from sandbox import roots as module
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.contract import Mount, Mounts, SandboxBackend, Unavailable
from sandbox.policy import SYSTEM_FOLDERS, Policy, parse_policy
from sandbox.process import ProcessBackend
from sandbox.roots import Roots
from tests.sandbox.conftest import made
from tools_app.mountroots import mount_roots


def test_a_database_and_all_that_its_engine_keeps_beside_it_is_never_opened(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
):
    settings.AGENTSITE_MOUNT_ROOTS = [str(tmp_path)]
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", str(tmp_path / "db.sqlite3"))
    for ending in ("", "-wal", "-shm", "-journal"):
        file = tmp_path / f"db.sqlite3{ending}"
        file.touch()
        with pytest.raises(Invalid, match=f"db.sqlite3{ending}"):
            mount_roots().check(opening(file))
    (tmp_path / "else").mkdir()
    mount_roots().check(opening(tmp_path / "else"))


@pytest.mark.parametrize(
    "name",
    ["STRANDS_DIR", "SKILLS_INDEX", "SKILLS_DIR", "SKILLS_FOLDERS", "WATCHED_DOCUMENTS"],
)
def test_a_folder_from_which_the_server_takes_code_is_never_opened_and_others_are_not_written_to(
    tmp_path: Path, settings: Any, name: str
):
    settings.AGENTSITE_MOUNT_ROOTS = [str(tmp_path)]
    kept = tmp_path / "srv" / "kept"
    kept.mkdir(parents=True)
    given = {"SKILLS_FOLDERS": [str(kept)], "WATCHED_DOCUMENTS": {"coll_x": str(kept)}}
    mount_roots().check(opening(kept))
    setattr(settings, f"AGENTSITE_{name}", given.get(name, str(kept)))
    is_code = name in {"STRANDS_DIR", "SKILLS_INDEX"}
    for path in (kept, kept / "below", kept.parent):
        for write in (False, True):
            if write or is_code:
                with pytest.raises(Invalid, match="server's own" if is_code else "read at most"):
                    mount_roots().check(opening(path, write=write))
            else:
                mount_roots().check(opening(path))
    mount_roots().check(Policy())


def test_the_python_that_runs_the_server_is_never_written_to(settings: Any):
    found = Path(sys.base_prefix)
    settings.AGENTSITE_MOUNT_ROOTS = [str(found)]
    for path in (Path(sysconfig.get_path("stdlib")), Path(sys.executable).resolve()):
        with pytest.raises(Invalid, match="server's own"):
            mount_roots().check(opening(path, write=True))


@pytest.fixture
def host() -> Iterator[Path]:
    """A host with the server's data beside a folder that the operator opens."""
    with tempfile.TemporaryDirectory(prefix="agentsite-roots-") as folder:
        yield _furnished(Path(folder).resolve())


def _furnished(tmp_path: Path) -> Path:
    for name in ("data", "open/sub", "open/own", "else"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data" / "secret").write_text("sesame")
    (tmp_path / "open" / "sub" / "notes").write_text("notes")
    (tmp_path / "data" / "env").write_text("KEY=sesame")
    tmp_path.chmod(0o711)  # others may pass, as on a real host
    return tmp_path


def opening(path: Path | str, *, write: bool = False) -> Policy:
    files = {"read_only": [*SYSTEM_FOLDERS, str(path)]}
    if write:
        files = {"read_only": [], "read_write": [str(path)]}
    return parse_policy({"filesystem_policy": files})


def roots_of(host: Path) -> Roots:
    return Roots(allowed=(host / "open",), own=(host / "data", host / "open" / "own"))


def refused(roots: Roots, path: Path | str, *, write: bool = False) -> str:
    """The reason, the same when it is saved and when it is opened; empty: it may be opened."""
    try:
        roots.check(opening(path, write=write))
    except Invalid as problem:
        with pytest.raises(Unavailable):
            roots.refuse(opening(path, write=write))
        with pytest.raises(Unavailable):
            roots.open(str(path), writable=write)
        return problem.message
    return ""


def test_what_the_operator_opens_may_be_opened(host: Path) -> None:
    assert refused(roots_of(host), host / "open" / "sub") == ""
    assert refused(roots_of(host), host / "open" / "sub", write=True) == ""
    assert refused(roots_of(host), "/usr/share") == ""
    Roots().check(Policy())


@pytest.mark.parametrize("write", [False, True])
def test_by_default_nothing_but_the_systems_folders_is_opened(host: Path, write: bool) -> None:
    for path in (host / "open", "/srv", "/opt", "/home", "/etc", "/etc/shadow", "/var/lib", "/tmp"):
        assert "none of the folders" in refused(Roots(), path, write=write)
    assert refused(Roots(), "/usr", write=True)


def test_the_servers_own_is_never_opened_under_any_name(host: Path) -> None:
    wide = Roots(allowed=(host, Path("/var")), own=(host / "data", host / "data" / "env"))
    (host / "link").symlink_to("data")
    (host / "open" / "deep").symlink_to(host / "data" / "secret")
    (host / "open" / "up").symlink_to("..")
    (host / "chain").symlink_to("link")
    for path in ("data", "data/secret", "data/env", "link", "chain", "open/deep", "open/up", ""):
        assert "server's own" in refused(wide, host / path), path
    assert refused(wide, host / "open" / "sub") == ""


def test_a_link_that_leads_out_of_what_is_open_is_refused(host: Path) -> None:
    (host / "open" / "out").symlink_to(host / "else")
    assert "none of the folders" in refused(roots_of(host), host / "open" / "out")
    (host / "open" / "run").symlink_to("/run")
    assert "running system" in refused(roots_of(host), host / "open" / "run")


def test_sockets_and_pipes_are_refused(host: Path) -> None:
    os.mkfifo(host / "open" / "pipe")
    assert "neither a folder nor a file" in refused(roots_of(host), host / "open" / "pipe")


def test_another_name_by_a_mount_is_known(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel would tell of `mount --bind …/data …/open/sub/again`."""
    known = module._mount_points()
    data = module._place(PurePosixPath(host / "data"), known)
    again = module._MountPoint(PurePosixPath(host / "open" / "sub" / "again"), data)
    monkeypatch.setattr(module, "_mount_points", lambda: [again, *known])
    for path in ("open/sub/again", "open/sub/again/secret", "open/sub"):
        assert "server's own" in refused(roots_of(host), host / path), path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_real_second_mount_is_known(host: Path) -> None:
    script = (
        "import subprocess, sys; from pathlib import Path; from sandbox.roots import Roots\n"
        "host = Path(sys.argv[1]); (host / 'open/again').mkdir()\n"
        "subprocess.run(['mount', '--bind', host / 'data', host / 'open/again'], check=True)\n"
        "print(Roots((host / 'open',), (host / 'data',))._against(str(host / 'open/again'), writable=False))"
    )
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", script, str(host)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        assert "ermi" in done.stderr  # a machine where even root may not mount
    else:
        assert "server's own" in done.stdout


def test_a_swap_after_the_judgement_is_noticed(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = roots_of(host)
    opened = module._opened

    def late(path: str) -> int:
        (host / "open" / "sub").rename(host / "open" / "was")
        (host / "open" / "sub").symlink_to(host / "data")
        return opened(path)

    monkeypatch.setattr(module, "_opened", late)
    with pytest.raises(Unavailable, match="changed while"):
        roots.open(str(host / "open" / "sub"), writable=False)


@pytest.mark.parametrize("name", ["bubblewrap", "process"])
async def test_a_sandbox_shows_what_is_open_and_refuses_the_rest(host: Path, name: str) -> None:
    await asyncio.to_thread(made, name)
    held: SandboxBackend = BubblewrapBackend(roots=roots_of(host))
    if name == "process":
        held = ProcessBackend(roots=roots_of(host))
    work = host / "work"
    work.mkdir()
    mounts = Mounts(Mount(work, Path("/workspace"), writable=True))
    try:
        inside = host / "open" / "sub"
        shown = await held.run(f"cat {inside}/notes", opening(inside), mounts)
        assert shown.stdout.text == "notes"
        (host / "open" / "way").symlink_to(host / "data")
        for path in (host / "data", host / "open" / "way", host / "else"):
            with pytest.raises(Unavailable, match="the policy opens"):
                await held.run(f"cat {path}/secret", opening(path), mounts)
            with pytest.raises(Unavailable, match="the policy opens"):
                await held.open_shell(opening(path), mounts)
        shell = await held.open_shell(opening(inside), mounts)
        assert (await shell.run(f"cat {inside}/notes")).stdout.text == "notes"
        await shell.close()
    finally:
        await held.close()
