"""What a command puts into a folder is counted, wherever in it and by whomever it was left running."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import diskwatch
from sandbox.contract import KilledBy, Mounts, SandboxBackend
from sandbox.diskwatch import measure
from sandbox.heldfiles import EVERYTHING, MOST_FILES, held_without_a_name
from sandbox.policy import parse_policy
from sandbox.process import hand_over
from tests.patience import PATIENCE
from tools_app.removing import remove_tree

MB = 1024 * 1024
NAME = "n" * 250


def filled(folder: int, name: str, size: int = MB) -> None:
    file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
    os.write(file, b"x" * size)
    os.close(file)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can get to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def test_what_lies_deeper_than_a_path_can_say_is_counted(place: Path) -> None:
    here = os.open(place, os.O_RDONLY)
    for _depth in range(20):  # 5,000 characters
        os.mkdir(NAME, dir_fd=here)
        inside = os.open(NAME, os.O_RDONLY, dir_fd=here)
        filled(here, "beside")
        os.close(here)
        here = inside
    filled(here, "deep", 5 * MB)
    os.close(here)
    found = measure([place], 1_000)
    assert found.files == 41
    assert 25 * MB <= found.size < 26 * MB


def test_a_workspace_however_deep_is_handed_to_the_user_of_its_commands(place: Path) -> None:
    here = os.open(place, os.O_RDONLY)
    for _depth in range(2_000):
        os.mkdir("d", dir_fd=here)
        inside = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
    os.close(here)
    (place / "d" / "file").touch()
    hand_over([place], os.geteuid())
    remove_tree(place / "d")


def said_by_another_user(what: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65_534)
            os.setuid(65_534)
            os._exit(0 if what() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("mode", [0o000, 0o300, 0o600])
def test_a_folder_that_its_owner_closes_to_looks_is_counted(place: Path, mode: int) -> None:
    def closed() -> bool:
        (place / "closed" / "deep").mkdir(parents=True)
        (place / "closed" / "deep" / "file").write_bytes(b"x" * MB)
        (place / "closed").chmod(mode)
        found = measure([place], 1_000)
        return (found.files, found.size >= MB) == (3, True)

    assert said_by_another_user(closed)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("mode", [0o000, 0o300, 0o400])
def test_the_workspace_itself_is_counted_where_it_is_closed_to_looks(
    place: Path, mode: int
) -> None:
    def closed() -> bool:
        (place / "all").mkdir()
        (place / "all" / "file").write_bytes(b"x" * MB)
        (place / "all").chmod(mode)
        found = measure([place / "all"], 1_000)
        return (found.files, found.size >= MB) == (1, True)

    assert said_by_another_user(closed)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_folder_that_is_closed_again_during_a_look_is_opened_again(place: Path) -> None:
    def closed_again() -> bool:
        (place / "closed" / "deep").mkdir(parents=True)
        here = os.open(place / "closed", os.O_RDONLY)
        (place / "closed").chmod(0o000)
        inside = diskwatch._entered(here, "deep", 0o700)
        (place / "closed").chmod(0o000)
        path = ["closed", "deep"]
        diskwatch._Count(10)._back(place, path)
        return inside is not None and path == ["closed", "deep"]

    assert said_by_another_user(closed_again)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("which", ["all", "all/closed"])
def test_a_folder_that_is_closed_again_at_each_look_holds_more_than_it_may(
    place: Path, which: str
) -> None:
    """By a program that does nothing else, in the moment between opening it to looks and looking."""

    def closed_always() -> bool:
        (place / "all" / "closed").mkdir(parents=True)
        (place / "all" / "closed" / "file").write_bytes(b"x" * MB)
        real, number = os.open, (place / which).stat().st_ino

        def open_late(path: Any, flags: int, *more: Any, **named: Any) -> int:
            place_of = real(path, flags | os.O_PATH, *more, **named)
            if os.fstat(place_of).st_ino == number and not flags & os.O_PATH:
                Path(f"/proc/self/fd/{place_of}").chmod(0o000)
            os.close(place_of)
            return real(path, flags, *more, **named)

        os.open = open_late
        return measure([place / "all"], 1_000).files == 1_001

    assert said_by_another_user(closed_always)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_what_is_in_a_folder_that_is_closed_while_its_names_are_read_is_counted(
    place: Path,
) -> None:
    def closed_meanwhile() -> bool:
        (place / "closed").mkdir()
        (place / "closed" / "file").write_bytes(b"x" * MB)
        here = os.open(place / "closed", os.O_RDONLY)
        (place / "closed").chmod(0o400)
        count = diskwatch._Count(10)
        count._scan(here)
        return count.size >= MB

    assert said_by_another_user(closed_meanwhile)


def test_counting_ends_with_more_names_than_there_may_be(place: Path) -> None:
    for number in range(50):
        (place / f"folder{number}").mkdir()
        (place / f"folder{number}" / "file").touch()
    assert 20 < measure([place], 20).files <= 71


HIDES = {
    "by a thread with files of its own": """
import ctypes, threading
def hide():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    hold(); ready()
threading.Thread(target=hide).start()
""",
    "by a thread that outlives the first": """
import ctypes, threading
def hide():
    first = os.getpid()
    while open(f'/proc/{first}/task/{first}/stat').read().rpartition(')')[2].split()[0] != 'Z':
        time.sleep(0.01)
    hold(); ready()
threading.Thread(target=hide).start()
libc = ctypes.CDLL(None)
libc.pthread_exit(None)
""",
    "mapped, by a name with the end of a line in it": """
import mmap
hold('a\\x0cb'); mapped = mmap.mmap(held.fileno(), 0); held.close(); ready()
""",
}
BEFORE = """
import os, time
def hold(name='held'):
    global held
    held = open(name, 'w+b'); os.unlink(name)
    held.write(b'x' * 5_000_000); held.flush()
def ready():
    print('ready', flush=True); time.sleep(60)
"""


def held_by(place: Path, program: str) -> int:
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=place, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        try:
            return held_without_a_name(running.pid, [place])
        finally:
            running.kill()


@pytest.mark.parametrize("how", HIDES)
def test_a_removed_file_that_is_held_counts_however_it_is_hidden(place: Path, how: str) -> None:
    assert 5_000_000 <= held_by(place, BEFORE + HIDES[how]) < 6_000_000


def test_who_holds_more_than_anybody_looks_at_holds_too_much(place: Path) -> None:
    """A look that takes long is one that comes seldom."""
    program = """
import ctypes, os, time
held = open('held', 'w+b'); os.unlink('held'); held.write(bytes(4096)); held.flush()
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
for _time in range(%d): libc.mmap(None, 4096, 1, 1, held.fileno(), 0)
print('ready', flush=True); time.sleep(60)
"""
    assert held_by(place, program % 100) == 4_096
    assert held_by(place, program % (MOST_FILES + 100)) == EVERYTHING


HELD = """
import mmap, os, time
kept = []
for number in range(20):
    file = open(f'kept{number}', 'w+b'); os.unlink(file.name)
    file.write(b'x' * 1000000); file.flush()
    kept.append(%s); time.sleep(0.1)
time.sleep(60)
"""


@pytest.mark.parametrize("kept", ["file", "mmap.mmap(file.fileno(), 0)"], ids=["open", "mapped"])
async def test_a_removed_file_that_is_still_held_counts(
    backend: SandboxBackend, mounts: Mounts, kept: str
) -> None:
    policy = parse_policy({"require": [], "resources": {"workspace_mb": 5}})
    shell = await backend.open_shell(policy, mounts)
    result = await shell.run(f"python3 -c {shlex.quote(HELD % kept)}", timeout=PATIENCE)
    assert result.killed_by is KilledBy.DISK
    await shell.close()
    command = f"python3 -c {shlex.quote(HELD % kept)}"
    once = await backend.run(command, policy, mounts, timeout=PATIENCE)
    assert once.killed_by is KilledBy.DISK


async def test_a_program_that_was_left_running_is_ended_when_it_overfills_the_workspace(
    bubblewrap: SandboxBackend, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diskwatch, "LEFT_SECONDS", 0.1)
    policy = parse_policy({"resources": {"workspace_mb": 2, "file_mb": 1}})
    shell = await bubblewrap.open_shell(policy, mounts)
    filling = "for i in $(seq 500); do head -c 500000 /dev/zero > f$i; sleep 0.05; done"
    result = await shell.run(f"(sleep 0.5; {filling}) >/dev/null 2>&1 &")
    assert result.left
    async with asyncio.timeout(PATIENCE):
        while shell.alive:  # noqa: ASYNC110 - another task ends it
            await asyncio.sleep(0.05)
    await shell.close()
    before = measure([mounts.workdir.source], 1_000)
    assert before.size < 100 * MB
    await asyncio.sleep(0.3)
    assert measure([mounts.workdir.source], 1_000) == before


async def test_a_program_that_was_left_running_within_bounds_lives_on(
    bubblewrap: SandboxBackend, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diskwatch, "LEFT_SECONDS", 0.05)
    shell = await bubblewrap.open_shell(parse_policy({}), mounts)
    await shell.run("(sleep 0.5; echo x > made; sleep 60) >/dev/null 2>&1 &")
    async with asyncio.timeout(PATIENCE):
        while not (mounts.workdir.source / "made").exists():  # noqa: ASYNC110 - a command makes it
            await asyncio.sleep(0.05)
    assert (await shell.run("echo here")).stdout.text == "here\n"
    assert shell.alive
    await shell.close()
