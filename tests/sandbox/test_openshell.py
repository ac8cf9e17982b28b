"""The OpenShell backend against a stand-in of its client's interface."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.contract import KilledBy, Mount, Mounts, SandboxFailed, Unavailable
from sandbox.guarantees import Guarantee
from sandbox.openshell import OpenShellBackend, packed, unpacked
from sandbox.policy import Policy, Resources, parse_policy
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]


@dataclass
class Chunk:
    stream: str
    data: bytes


@dataclass
class Ended:
    exit_code: int
    stdout: str = ""
    stderr: str = ""


class Gateway:
    """Runs what it is asked in a folder of its own that stands for the sandbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status = 1
        self.specs: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.closed = False
        self.holds_up = "\0"
        """What a command says that never gives a word, nor ends before its sandbox."""
        self.ended = threading.Event()

    def health(self) -> object:
        if self.status == 0:
            raise ConnectionError("failed to connect to all addresses")
        return SimpleNamespace(status=self.status, version="0.1.5")

    def create(
        self, *, workspace: str, spec: dict[str, Any] | None = None, name: str | None = None
    ) -> object:
        self.specs.append(spec or {})
        return SimpleNamespace(name=name or f"box-{len(self.specs)}")

    def wait_ready(self, name: str, *, workspace: str, timeout_seconds: float = 300) -> object:
        return SimpleNamespace(name=name)

    def exec_stream(
        self,
        sandbox,
        command,
        *,
        workspace,
        workdir=None,
        env=None,
        stdin=None,
        timeout_seconds=None,
    ) -> Iterator[object]:
        if self.holds_up in command[-1]:
            self.ended.wait(10 * PATIENCE)
            return
        running = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"},
        )
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(stdin or b"")
        running.stdin.close()
        ends = time.monotonic() + (timeout_seconds or 60)
        try:
            while data := os.read(running.stdout.fileno(), 65_536):
                yield Chunk("stdout", data)
                if time.monotonic() > ends:
                    return
            yield Ended(running.wait())
        finally:
            running.kill()

    def delete(self, name: str, *, workspace: str, allow_missing: bool = False) -> object:
        self.deleted.append(name)
        self.ended.set()
        return SimpleNamespace()

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    (tmp_path / "box").mkdir()
    return Gateway(tmp_path / "box")


@pytest.fixture
def openshell(gateway: Gateway) -> OpenShellBackend:
    return OpenShellBackend(client=lambda _endpoint: gateway, spec=lambda document: document)


@pytest.fixture
def place(tmp_path: Path, gateway: Gateway) -> Mounts:
    (tmp_path / "w").mkdir()
    return Mounts(Mount(tmp_path / "w", gateway.folder / "work", writable=True))


async def test_without_client_or_gateway_it_is_refused_with_reason_and_remedy(
    gateway: Gateway, openshell: OpenShellBackend, place: Mounts
):
    def no_client(_endpoint: str):
        raise ModuleNotFoundError("No module named 'openshell'", name="openshell")

    absent = await OpenShellBackend(client=no_client).probe()
    assert absent.problem == "the package “openshell” is not installed"
    assert "requirements-openshell.txt" in absent.remedy
    gateway.status = 0
    with pytest.raises(
        Unavailable, match="its gateway does not answer: failed to connect"
    ) as refusal:
        await openshell.run("true", Policy(), place)
    assert "start the OpenShell gateway" in refusal.value.hint


async def test_a_client_that_lacks_a_part_is_told_from_one_that_is_not_installed():
    def half_a_client(_endpoint: str):
        raise ModuleNotFoundError("No module named 'grpc'", name="grpc")

    found = await OpenShellBackend(client=half_a_client).probe()
    assert not found.available
    assert found.problem == "the package “openshell” cannot be loaded: No module named 'grpc'"


def test_the_client_is_loaded_by_the_probe_and_by_nothing_before():
    """In a process of its own, where nobody else can have loaded it."""
    script = """
import asyncio, importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    asked = []
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"openshell", "grpc"}:
            self.asked.append(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from sandbox.openshell import OpenShellBackend
backend = OpenShellBackend()
print(Absent.asked)
print(asyncio.run(backend.probe()).problem, Absent.asked)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert ran.stdout.splitlines() == [
        "[]",
        "the package “openshell” is not installed ['openshell']",
    ], ran.stderr


async def test_a_backend_that_was_told_what_another_found_connects_by_itself(
    gateway: Gateway, openshell: OpenShellBackend, place: Mounts
):
    found = await openshell.probe()
    another = OpenShellBackend(
        client=lambda _endpoint: gateway, spec=lambda document: document, found=found
    )
    assert (await another.run("echo here", Policy(), place)).stdout.text == "here\n"
    await another.close()
    assert gateway.closed


async def test_an_unhealthy_gateway_is_not_used(gateway: Gateway, openshell: OpenShellBackend):
    gateway.status = 2
    assert not (await openshell.probe()).available


async def test_files_travel_there_and_back_and_what_was_removed_is_gone(
    gateway: Gateway, openshell: OpenShellBackend, place: Mounts
):
    work = place.workdir.source
    (work / "given").write_text("here")
    (work / "old").write_text("x")
    result = await openshell.run("cat given; rm old; echo new > made; exit 3", Policy(), place)
    assert (result.stdout.text, result.exit_code) == ("here", 3)
    assert sorted(path.name for path in work.iterdir()) == ["given", "made"]
    assert gateway.deleted == ["box-1"]


async def test_what_was_taken_away_between_two_commands_does_not_come_back(
    openshell: OpenShellBackend, place: Mounts
):
    work = place.workdir.source
    (work / "folder").mkdir()
    for name in ("secret", "folder/a", "kind"):
        (work / name).write_text("x")
    shell = await openshell.open_shell(Policy(), place)
    await shell.run("echo new > made; ln -s kind link")
    for name in ("secret", "folder/a", "made", "kind"):
        (work / name).unlink()
    (work / "folder").rmdir()
    (work / "kind").mkdir()
    result = await shell.run("ls")
    assert result.stdout.text.split() == ["kind", "link"]
    assert [path.name for path in work.iterdir()] == ["kind"]
    assert (work / "kind").is_dir()


async def test_what_changes_here_while_a_command_runs_is_not_undone_by_it(
    openshell: OpenShellBackend, place: Mounts
):
    work = place.workdir.source
    for name in ("edited", "removed", "touched", "script"):
        (work / name).write_text("old")
    shell = await openshell.open_shell(Policy(), place)
    command = (
        "echo new > touched; chmod +x script; echo begun; until [ -f ../go ]; do sleep 0.02; done"
    )
    begun = asyncio.Event()
    running = asyncio.create_task(shell.run(command, on_output=lambda *_: begun.set()))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    (work / "edited").write_text("by a person")
    (work / "removed").unlink()
    (place.workdir.target.parent / "go").touch()
    assert (await running).exit_code == 0
    assert (work / "edited").read_text() == "by a person"
    assert not (work / "removed").exists()
    assert (work / "touched").read_text() == "new\n"
    assert os.access(work / "script", os.X_OK)


async def test_what_holds_up_the_files_on_their_way_ends_with_its_sandbox_and_holds_up_nobody_else(
    gateway: Gateway,
    openshell: OpenShellBackend,
    place: Mounts,
    monkeypatch: pytest.MonkeyPatch,
):
    """As a program inside does that stops the one which packs them."""
    monkeypatch.setattr("sandbox.openshell.CARRY_SECONDS", 1.0)
    shell = await openshell.open_shell(Policy(), place)
    gateway.holds_up = "tar -c"
    running = asyncio.create_task(shell.run("echo new > made"))
    with pytest.raises(SandboxFailed, match="in time"):
        async with asyncio.timeout(PATIENCE):
            await running
    assert gateway.deleted == ["box-1"]
    assert not shell.alive


async def test_links_and_paths_that_lead_out_do_not_come_back(
    gateway: Gateway, openshell: OpenShellBackend, place: Mounts, tmp_path: Path
):
    (tmp_path / "outside").mkdir()
    await openshell.run(f"ln -s {tmp_path}/outside way; ln -s /etc/passwd p", Policy(), place)
    assert list(place.workdir.source.iterdir()) == []


async def test_the_policy_is_told_in_the_gateways_own_schema(
    gateway: Gateway, openshell: OpenShellBackend, place: Mounts
):
    policy = parse_policy(
        {
            "filesystem_policy": {"read_only": ["/usr"]},
            "network_policies": {
                "web": {"endpoints": [{"host": "a.example", "port": 443, "methods": ["GET"]}]}
            },
        }
    )
    await openshell.run("true", policy, place)
    document = gateway.specs[0]
    assert document["filesystem"]["read_only"] == ["/usr"]
    (endpoint,) = document["network_policies"]["web"]["endpoints"]
    assert (endpoint["host"], endpoint["ports"]) == ("a.example", [443])
    assert endpoint["rules"] == [{"allow": {"method": "GET", "path": "/**"}}]


async def test_an_endless_printer_and_a_late_command_end_the_sandbox(
    gateway: Gateway, openshell: OpenShellBackend, place: Mounts
):
    policy = parse_policy({"resources": {"output_kb": 1}})
    endless = await openshell.run("yes", policy, place)
    assert endless.killed_by is KilledBy.OUTPUT
    assert len(endless.stdout.head) + len(endless.stdout.tail) <= 1024
    late = await openshell.run("sleep 5", policy, place, timeout=1)
    assert late.killed_by is KilledBy.TIMEOUT
    assert gateway.deleted == ["box-1", "box-2"]


async def test_what_depends_on_the_gateways_driver_is_not_promised(openshell: OpenShellBackend):
    capabilities = await openshell.probe()
    assert Guarantee.MEMORY_TOTAL not in capabilities.guarantees
    assert "compute driver" in capabilities.reasons[Guarantee.MEMORY_TOTAL]


@pytest.mark.parametrize("kind", ["xz", "bz2", "gz"])
def test_an_archive_that_was_compressed_behind_our_back_is_not_unpacked(tmp_path, kind):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=f"w:{kind}") as archive:  # type: ignore[call-overload]
        entry = tarfile.TarInfo("zeros")
        entry.size = 5_000_000
        archive.addfile(entry, io.BytesIO(bytes(5_000_000)))
    with pytest.raises(SandboxFailed, match="carried back"):
        unpacked(data.getvalue(), packed(tmp_path), tmp_path, Resources())
    assert list(tmp_path.iterdir()) == []


def entry_of(name: str, size: int = 0) -> bytes:
    """The head of a file, whatever it says of its size."""
    head = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    head[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)  # type: ignore[attr-defined]
    head[148:156] = b" " * 8
    checked = tarfile.calc_chksums(bytes(head))[0]  # type: ignore[attr-defined]
    head[148:156] = b"%06o\0 " % checked
    return bytes(head)


@pytest.mark.parametrize("command", ["sleep 60", "head -c 2000000 /dev/zero > large"])
async def test_no_copy_of_a_workspace_is_kept_of_a_command_from_which_nothing_came_back(
    openshell: OpenShellBackend, place: Mounts, command: str
):
    policy = parse_policy({"resources": {"workspace_mb": 1}})
    shell = await openshell.open_shell(policy, place)
    with suppress(SandboxFailed):
        await shell.run(command, timeout=1.0)
    assert shell._sent == {}


@pytest.mark.parametrize("name", ["..", "./..", "a/../..", "a/.."])
def test_a_name_that_goes_up_takes_nothing_away_there(tmp_path: Path, name: str):
    """A program inside can word the archive itself: it writes where `tar` does."""
    work, others = tmp_path / "w", tmp_path / "others"
    for folder in (work, others):
        (folder / "a").mkdir(parents=True)
        (folder / "a" / "kept").touch()
    with pytest.raises(SandboxFailed, match="leads out"):
        unpacked(entry_of(name) + bytes(10_240), packed(work), work, Resources())
    assert [(folder / "a" / "kept").exists() for folder in (work, others)] == [True, True]


def test_an_archive_that_leads_back_into_itself_is_read_no_further(tmp_path: Path):
    data = entry_of("first") + entry_of("again", -tarfile.BLOCKSIZE) + bytes(10_240)
    ended = threading.Event()

    def unpack() -> None:
        with pytest.raises(SandboxFailed, match="no end"):
            unpacked(data, packed(tmp_path), tmp_path, Resources())
        ended.set()

    threading.Thread(target=unpack, daemon=True).start()
    assert ended.wait(PATIENCE)


def test_a_folder_that_was_made_here_where_a_command_removed_a_file_stays(tmp_path: Path):
    (tmp_path / "kind").touch()
    sent = packed(tmp_path)
    (tmp_path / "kind").unlink()
    (tmp_path / "kind").mkdir()
    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w"):
        pass
    assert unpacked(empty.getvalue(), sent, tmp_path, Resources()) == frozenset()
    assert (tmp_path / "kind").is_dir()
