"""What every backend does alike: commands, their ends, their output, and shells that last."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox.busy import COMMAND_LIMIT
from sandbox.contract import (
    KilledBy,
    Mounts,
    SandboxBackend,
    SandboxFailed,
    ShellBusy,
    Unavailable,
)
from sandbox.egress import Decision
from sandbox.policy import Policy, parse_policy
from sandbox.supervised import SupervisedShell
from tests.patience import PATIENCE
from tests.sandbox.attack.world import World


def alive(mark: str) -> bool:
    return next(running_as(mark), None) is not None


def running_as(mark: str) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        # It may end between the list and the look.
        with suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes():
                yield int(process.name)


def sleeping(mark: str) -> int | None:
    for pid in running_as(mark):
        if Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
            return pid
    return None


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/stat").read_text()
    return int(status.rpartition(") ")[2].split()[1])


async def gone(mark: str) -> bool:
    """What was killed is gone as soon as the machine gets to it."""
    async with asyncio.timeout(PATIENCE):
        while alive(mark):  # noqa: ASYNC110 - of the system's processes
            await asyncio.sleep(0.01)
    return True


@pytest.fixture
async def pass_time(monkeypatch) -> Callable[[float], None]:
    """Has the loop believe that so many seconds have passed."""
    loop = asyncio.get_running_loop()
    real, passed = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real() + sum(passed))
    return passed.append


@pytest.fixture
def mark() -> str:
    return f"0.{secrets.randbelow(10**9):09d}977"


async def test_a_command_answers_with_output_errors_code_and_duration(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    result = await backend.run("echo out; echo err >&2; exit 7", policy, mounts)
    assert (result.stdout.text, result.stderr.text, result.exit_code) == ("out\n", "err\n", 7)
    assert result.killed_by is None
    assert 0 < result.duration < 30
    assert result.backend == backend.name


async def test_only_the_backend_none_calls_itself_unconfined(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    result = await backend.run("true", policy, mounts)
    assert result.confined is (backend.name != "none")


async def test_arguments_are_handed_over_as_they_are(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    result = await backend.run(["printf", "%s|", "$HOME", "a b", "'", "*"], policy, mounts)
    assert result.stdout.text == "$HOME|a b|'|*|"


async def test_what_a_command_writes_is_there_for_the_server(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, workspace: Path
):
    (workspace / "given").write_text("from the server")
    result = await backend.run("cat given; echo made > new", policy, mounts)
    assert result.stdout.text == "from the server"
    assert (workspace / "new").read_text() == "made\n"


async def test_endless_output_is_kept_only_at_both_ends_with_a_mark_between(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    result = await backend.run("echo first; seq 1 200000; echo last", policy, mounts)
    text = result.stdout.text
    assert text.startswith("first\n1\n")
    assert text.endswith("200000\nlast\n")
    assert "bytes left out" in text
    assert len(result.stdout.head) + len(result.stdout.tail) <= 16 * 1024
    assert result.stdout.size == sum(len(f"{n}\n") for n in range(1, 200_001)) + 11
    assert result.exit_code == 0


async def test_output_within_the_limit_has_no_mark(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    result = await backend.run("head -c 16384 /dev/zero | tr '\\0' x", policy, mounts)
    assert result.stdout.text == "x" * 16_384
    assert not result.stdout.truncated


async def test_a_late_command_is_killed_with_all_it_started(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, mark: str, pass_time
):
    result = await backend.run(
        f"(setsid sleep 9{mark} &); echo begun; sleep 9{mark}",
        policy,
        mounts,
        on_output=lambda *_: pass_time(3_600),
    )
    assert result.killed_by is KilledBy.TIMEOUT
    assert result.exit_code is None
    assert result.stdout.text == "begun\n"
    assert await gone(mark)


async def test_cancelling_kills_the_command_with_all_it_started(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, mark: str
):
    begun = asyncio.Event()
    command = f"(setsid sleep 9{mark} &); echo begun; sleep 9{mark}"
    task = asyncio.create_task(
        backend.run(command, policy, mounts, on_output=lambda *_: begun.set())
    )
    await asyncio.wait_for(begun.wait(), PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(mark)


async def test_output_is_told_while_it_arrives_and_only_up_to_the_limit(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    told: list[tuple[str, bytes]] = []
    await backend.run(
        "echo one; echo two >&2; seq 100000", policy, mounts, on_output=lambda *p: told.append(p)
    )
    out = b"".join(data for stream, data in told if stream == "stdout")
    assert out.startswith(b"one\n1\n2\n")
    assert len(out) == 16 * 1024
    assert [data for stream, data in told if stream == "stderr"] == [b"two\n"]


async def test_what_a_listener_raises_ends_the_command(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, mark: str
):
    def listener(*_piece: object) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await backend.run(f"echo x; sleep 9{mark}", policy, mounts, on_output=listener)
    assert await gone(mark)


@pytest.mark.parametrize("command", ["", "  \n", "echo a\0b", "x" * (COMMAND_LIMIT + 1), "\udcff"])
async def test_what_is_no_command_is_refused_with_a_remedy(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, command: str
):
    with pytest.raises(Unavailable) as refusal:
        await backend.run(command, policy, mounts)
    assert refusal.value.message.startswith("The command was not run: it ")
    assert refusal.value.hint


async def test_the_longest_command_runs(backend: SandboxBackend, policy: Policy, mounts: Mounts):
    filler = "x" * (COMMAND_LIMIT - len("echo  | wc -c"))
    result = await backend.run(f"echo {filler} | wc -c", policy, mounts)
    assert int(result.stdout.text) == len(filler) + 1


async def test_no_variable_of_the_server_is_seen_unless_it_is_allowed(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("BUILD_FLAVOUR", "plain")
    hidden = await backend.run("env", policy, mounts)
    assert "sk-secret" not in hidden.stdout.text
    assert "BUILD_FLAVOUR" not in hidden.stdout.text
    open_policy = parse_policy({"require": [], "process": {"env_allow": ["BUILD_FLAVOUR"]}})
    seen = await backend.run("env", open_policy, mounts)
    assert "BUILD_FLAVOUR=plain" in seen.stdout.text


async def test_a_full_workspace_can_be_emptied_but_not_filled(
    backend: SandboxBackend, mounts: Mounts, workspace: Path
):
    policy = parse_policy({"require": [], "resources": {"workspace_mb": 1}})
    (workspace / "large").write_bytes(b"x" * 3 * 1024**2)
    await backend.run("echo more > new", policy, mounts)
    assert (workspace / "new").read_text() == "" if (workspace / "new").exists() else True
    result = await backend.run("rm -f large new && echo fine", policy, mounts)
    assert result.stdout.text == "fine\n"
    await backend.run("echo more > new", policy, mounts)
    assert (workspace / "new").read_text() == "more\n"


# --- shells ---------------------------------------------------------------------------------------


async def test_a_shell_keeps_directory_and_exported_variables(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    shell = await backend.open_shell(policy, mounts)
    await shell.run(
        "mkdir -p deep; cd deep; export WORDS=$'two\\n\"words\" $x'; plain=1; unset LANG"
    )
    result = await shell.run('basename "$PWD"; echo "$WORDS"; echo "[$plain$LANG]"')
    assert result.stdout.text == 'deep\ntwo\n"words" $x\n[]\n'
    assert result.workdir.endswith("/deep")
    await shell.close()


async def test_exit_and_errors_end_the_command_and_not_the_shell(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    shell = await backend.open_shell(policy, mounts)
    codes = [
        (await shell.run(command)).exit_code
        for command in ("exit 3", "set -e; false; echo no", "if", "nowhere-to-be-found", "true")
    ]
    assert codes == [3, 1, 2, 127, 0]
    assert (await shell.run("cd /tmp 2>/dev/null; cd ..; export A=1; exit 4")).exit_code == 4
    assert (await shell.run("echo $A")).stdout.text == "1\n"
    await shell.close()


async def test_large_output_does_not_harm_a_shell(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    shell = await backend.open_shell(policy, mounts)
    result = await shell.run("head -c 5000000 /dev/urandom | base64; head -c 3000000 /dev/zero")
    assert result.exit_code == 0
    assert result.stdout.truncated
    assert (await shell.run("echo still here")).stdout.text == "still here\n"
    await shell.close()


async def test_a_busy_shell_says_what_it_runs_and_takes_nothing_else(
    backend: SandboxBackend, policy: Policy, mounts: Mounts
):
    shell = await backend.open_shell(policy, mounts)
    begun = asyncio.Event()
    running = asyncio.create_task(
        shell.run("echo begun; sleep 600", on_output=lambda *_: begun.set())
    )
    await asyncio.wait_for(begun.wait(), PATIENCE)
    assert str(shell.busy) == "echo begun; sleep 600"
    with pytest.raises(ShellBusy, match="sleep 600"):
        await shell.run("echo other")
    assert shell.interrupt()
    result = await running
    assert result.killed_by is KilledBy.INTERRUPT
    assert result.stdout.text == "begun\n"
    assert not shell.busy
    assert not shell.interrupt()
    assert (await shell.run("echo on")).stdout.text == "on\n"
    await shell.close()


async def test_a_late_command_leaves_the_shell_where_it_was(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, mark: str
):
    shell = await backend.open_shell(policy, mounts)
    await shell.run("mkdir -p here; cd here; export KEPT=yes")
    late = await shell.run(f"cd /; (setsid sleep 9{mark} &); sleep 60", timeout=0.7)
    assert late.killed_by is KilledBy.TIMEOUT
    assert await gone(mark)
    assert shell.alive
    result = await shell.run('echo "$(basename "$PWD") $KEPT"')
    assert result.stdout.text == "here yes\n"
    await shell.close()


async def test_what_a_command_printed_before_its_shell_was_lost_is_kept(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, mark: str
):
    shell = await backend.open_shell(policy, mounts)
    if not isinstance(shell, SupervisedShell):
        pytest.skip("its shell is not ours to lose")
    begun = asyncio.Event()
    running = asyncio.create_task(
        shell.run(f"echo begun; sleep 9{mark}; true", on_output=lambda *_: begun.set())
    )
    await asyncio.wait_for(begun.wait(), PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while (last := sleeping(mark)) is None:  # noqa: ASYNC110 - of the system's processes
            await asyncio.sleep(0.01)
    os.kill(parent(parent(last)), signal.SIGKILL)
    result = await running
    assert result.killed_by is KilledBy.CLOSED
    assert result.stdout.text == "begun\n"
    assert result.left, "nobody is left who could say so"
    assert not shell.alive


async def test_programs_in_the_background_live_until_the_shell_is_closed(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, mark: str
):
    shell = await backend.open_shell(policy, mounts)
    result = await shell.run(
        f"(while :; do echo noise; sleep 0.05; done) & sleep 9{mark} & echo ok"
    )
    assert result.stdout.text.count("ok") == 1
    later = await shell.run("sleep 0.5; echo clean")
    assert later.stdout.text == "clean\n"
    async with asyncio.timeout(PATIENCE):
        while not alive(mark):  # noqa: ASYNC110 - of the system's processes
            await asyncio.sleep(0.01)
    await shell.close()
    await shell.close()
    assert await gone(mark)
    with pytest.raises(SandboxFailed, match="has ended"):
        await shell.run("echo x")


@pytest.mark.parametrize(
    "leaving",
    ["sleep 9{0} &", "(setsid sleep 9{0} </dev/null >/dev/null 2>&1 & )", "cat <(sleep 9{0}) &"],
    ids=["in the background", "forked twice, with a session of its own", "below another"],
)
async def test_every_end_tells_whether_programs_were_left_running(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, mark: str, leaving: str
):
    shell = await backend.open_shell(policy, mounts)
    assert not (await shell.run("sleep 0.01 & wait; echo $(echo x) | cat")).left
    assert (await shell.run(leaving.format(mark))).left
    assert (await shell.run("true")).left, "also a later command's"
    late = await shell.run("sleep 60", timeout=0.2)
    assert late.killed_by is KilledBy.TIMEOUT
    assert not late.left
    assert not (await shell.run("true")).left
    await shell.close()


async def test_what_carries_connections_out_of_a_sandbox_is_not_left_by_a_command(
    bubblewrap: SandboxBackend, mounts: Mounts, mark: str
):
    policy = parse_policy(
        {"network_policies": {"web": {"endpoints": [{"host": "good.example", "port": 80}]}}}
    )
    shell = await bubblewrap.open_shell(policy, mounts)
    assert not (await shell.run("true")).left
    assert (await shell.run("sleep 60", timeout=0.2)).killed_by is KilledBy.TIMEOUT
    assert not (await shell.run("true")).left, "another one took its place"
    assert (await shell.run(f"sleep 9{mark} &")).left
    await shell.close()
    assert (await bubblewrap.run(f"sleep 9{mark} &", policy, mounts)).left


async def test_closing_the_backend_ends_every_shell(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, mark: str
):
    shell = await backend.open_shell(policy, mounts)
    await shell.run(f"sleep 9{mark} &")
    await backend.close()
    assert not shell.alive
    assert await gone(mark)


async def test_a_listed_host_is_reached_through_the_proxy_and_each_decision_is_logged(
    bubblewrap: SandboxBackend,
):
    from tests.sandbox.attack.suite import backend_for  # noqa: PLC0415 - only here

    decisions: list[Decision] = []
    with World() as world:
        backend = backend_for("bubblewrap", world)
        backend._capabilities = await bubblewrap.probe()  # type: ignore[attr-defined]
        backend._on_decision = decisions.append  # type: ignore[attr-defined]
        policy = parse_policy(
            {"network_policies": {"web": {"endpoints": [{"host": "good.example", "port": 80}]}}}
        )
        ask = "exec 5<>/dev/tcp/127.0.0.1/3128; printf 'GET http://%s/ HTTP/1.1\\r\\n\\r\\n' "
        good = await backend.run(f"{ask} good.example >&5; cat <&5", policy, world.mounts())
        bad = await backend.run(f"{ask} evil.example >&5; cat <&5", policy, world.mounts())
    assert "200 OK" in good.stdout.text
    assert "welcome" in good.stdout.text
    assert "evil.example is not listed in network_policies" in bad.stdout.text
    assert [(one.host, one.allowed) for one in decisions] == [
        ("good.example", True),
        ("evil.example", False),
    ]
    assert decisions[0].address == "93.184.216.34"
