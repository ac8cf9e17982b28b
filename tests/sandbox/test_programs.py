"""Programs that are spoken to while they run: what every backend that has them keeps to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox.contract import Mounts, Program, SandboxBackend, SandboxFailed, Unavailable
from sandbox.docker import DockerBackend
from sandbox.openshell import OpenShellBackend
from sandbox.policy import Policy, parse_policy
from sandbox.programs import ProgramRegistry
from sandbox.unconfined import UnconfinedBackend
from tests.patience import PATIENCE
from tests.sandbox.conftest import made

from .test_conformance import gone, mark

__all__ = ["mark"]


@pytest.fixture(params=["bubblewrap", "process"])
def name(request: pytest.FixtureRequest) -> str:
    made(request.param)
    return str(request.param)


@pytest.fixture
async def confining(name: str) -> AsyncIterator[SandboxBackend]:
    backend = made(name)
    yield backend
    await backend.close()


async def whole(program: Program) -> bytes:
    """All that it says until it has ended."""
    said = b""
    async with asyncio.timeout(PATIENCE):
        while piece := await program.read():
            said += piece
    return said


async def line(program: Program) -> str:
    said = b""
    async with asyncio.timeout(PATIENCE):
        while not said.endswith(b"\n") and (piece := await program.read()):
            said += piece
    return said.decode().strip()


async def test_a_program_hears_and_answers_with_what_was_declared_for_it_and_nothing_else(
    confining: SandboxBackend, policy: Policy, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OF_THE_SERVER", "hidden")
    program = await confining.open_program(
        ["bash", "-c", 'while read -r it; do echo "$it $KEY [$OF_THE_SERVER]"; done'],
        policy,
        mounts,
        environment={"KEY": "given"},
    )
    await program.write(b"one\n")
    assert await line(program) == "one given []"
    await program.write(b"two\n")
    assert await line(program) == "two given []"
    lives = [program.alive]
    await program.close()
    assert [*lives, program.alive] == [True, False]
    assert await program.read() == b""
    with pytest.raises(SandboxFailed):
        await program.write(b"three\n")


async def test_nothing_in_the_workspace_is_taken_for_a_part_of_it(
    confining: SandboxBackend, policy: Policy, mounts: Mounts
):
    """Anybody may have written there, and it has secrets of its own."""
    shadow = mounts.workdir.source / "shadow.py"
    shadow.write_text("import os\nprint(os.environ['KEY'])\n")
    shadow.chmod(0o755)
    for argv in (["python3", "-m", "shadow"], ["./shadow.py"], ["bash", "shadow.py"]):
        program = await confining.open_program(argv, policy, mounts, environment={"KEY": "given"})
        assert await whole(program) == b""
    text = 'ls -A; cd "$WORKSPACE" && ls'
    program = await confining.open_program(["bash", "-c", text], policy, mounts)
    assert await whole(program) == b"shadow.py\n"


async def test_how_it_ended_is_said_with_what_it_wrote_into_its_errors(
    confining: SandboxBackend, policy: Policy, mounts: Mounts
):
    program = await confining.open_program(
        ["bash", "-c", "echo first; echo why >&2; exit 3"], policy, mounts
    )
    assert await whole(program) == b"first\n"
    assert program.ending == "It ended with exit code 3."
    assert program.last_errors() == "why\n"
    killed = await confining.open_program(["bash", "-c", "kill -9 $$"], policy, mounts)
    assert await whole(killed) == b""
    assert killed.ending == "It ended by the signal SIGKILL."
    none = await confining.open_program(["nowhere-to-be-found"], policy, mounts)
    assert await whole(none) == b""
    assert "there is no program nowhere-to-be-found" in none.ending


async def test_whatever_it_started_ends_with_it_however_it_tried_to_get_away(
    confining: SandboxBackend, policy: Policy, mounts: Mounts, mark: str
):
    """They hold its output open, and it is at its end all the same."""
    text = f"(setsid sleep 9{mark} &); (setsid bash -c 'exec sleep 8{mark}' &); echo begun; exit 0"
    program = await confining.open_program(["bash", "-c", text], policy, mounts)
    assert await whole(program) == b"begun\n"
    assert await gone(mark)
    program = await confining.open_program(
        ["bash", "-c", f"(setsid sleep 7{mark} &); echo begun; sleep 6{mark}"], policy, mounts
    )
    assert await line(program) == "begun"
    await program.close()
    assert await gone(mark)


async def test_it_ends_with_the_process_that_started_it_whatever_ended_that(
    tmp_path: Path, mounts: Mounts, mark: str, confining: SandboxBackend
):
    script = f"""
import asyncio
from pathlib import Path
from sandbox.contract import Mount, Mounts
from sandbox.policy import Policy
from tests.sandbox.conftest import made
backend = made({confining.name!r})
async def main():
    mounts = Mounts(Mount(Path({str(mounts.workdir.source)!r}), Path("/workspace"), writable=True))
    text = "(setsid sleep 9{mark} &); echo begun; sleep 8{mark}"
    program = await backend.open_program(["bash", "-c", text], Policy(require=()), mounts)
    print((await program.read()).decode(), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert parent.stdout is not None
    async with asyncio.timeout(PATIENCE):
        assert await parent.stdout.readline() == b"begun\n"
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    assert await gone(mark)


async def test_one_that_says_without_end_is_not_read_ahead_and_one_that_does_not_listen_waits(
    confining: SandboxBackend, policy: Policy, mounts: Mounts
):
    program = await confining.open_program(["yes"], policy, mounts)
    for _turn in range(50):
        assert 0 < len(await program.read()) <= 64 * 1024
    await program.close()
    deaf = await confining.open_program(["sleep", "600"], policy, mounts)
    writing = asyncio.create_task(deaf.write(b"x" * 3_000_000))
    done, _pending = await asyncio.wait([writing], timeout=0.1)
    assert not done
    await deaf.close()
    with pytest.raises(SandboxFailed):
        await writing


async def test_errors_without_end_and_a_workspace_that_overflows_end_it(
    bubblewrap: SandboxBackend, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sandbox.programs.MOST_ERRORS", 200_000)
    monkeypatch.setattr("sandbox.programs.DISK_SECONDS", 0.05)
    small = parse_policy({"require": [], "resources": {"workspace_mb": 1}})
    program = await bubblewrap.open_program(["bash", "-c", "yes >&2"], small, mounts)
    assert await whole(program) == b""
    assert "errors without end" in program.ending
    assert len(program.last_errors()) < 9_000
    text = 'head -c 3000000 /dev/zero > "$WORKSPACE/much"; sleep 600'
    program = await bubblewrap.open_program(["bash", "-c", text], small, mounts)
    assert await whole(program) == b""
    assert "workspace grew over its limit" in program.ending


async def test_a_removed_file_that_a_program_still_holds_counts_for_its_workspace(
    confining: SandboxBackend, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sandbox.programs.DISK_SECONDS", 0.05)
    small = parse_policy({"require": [], "resources": {"workspace_mb": 1}})
    text = (
        'exec 3>"$WORKSPACE/held"; rm "$WORKSPACE/held"; head -c 3000000 /dev/zero >&3; sleep 600'
    )
    program = await confining.open_program(["bash", "-c", text], small, mounts)
    assert await whole(program) == b""
    assert "workspace grew over its limit" in program.ending


async def test_backends_without_such_programs_say_so_and_start_nothing(
    policy: Policy, mounts: Mounts
):
    for backend in (
        UnconfinedBackend(allowed=True),
        DockerBackend(),
        OpenShellBackend(endpoint=""),
    ):
        words = "speaks to those alone" if backend.name == "docker" else "has commands alone"
        with pytest.raises(Unavailable, match=f"“{backend.name}” {words}"):
            await backend.open_program(["true"], policy, mounts)


async def test_there_are_only_so_many_and_each_conversation_ends_its_own(
    bubblewrap: SandboxBackend, policy: Policy, mounts: Mounts
):
    registry = ProgramRegistry(most=2, most_of_one=1)

    async def start() -> Program:
        return await bubblewrap.open_program(["cat"], policy, mounts)

    first = await registry.open("a", start)
    second = await registry.open("b", start)
    with pytest.raises(Unavailable, match="2 run on this server already"):
        await registry.open("c", start)
    await registry.close("a")
    assert (first.alive, second.alive) == (False, True)
    assert registry.open_keys() == ("b",)
    third = await registry.open("a", start)
    await registry.close("b")
    with pytest.raises(Unavailable, match="1 run for this conversation already"):
        await registry.open("a", start)
    second = await registry.open("b", start)
    await registry.close_all()
    assert not third.alive
    assert not second.alive
