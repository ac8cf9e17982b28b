"""The tool `bash`: what it answers, what stays between calls, and when there is nothing to run in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.events import CommandDisplay, NetworkRecord
from harness.tools import Effect, Outcome, ToolContext, perform
from sandbox.contract import Capabilities, Mount, Mounts, SandboxBackend, Unavailable
from sandbox.egress import Decision
from sandbox.guarantees import Guarantee
from sandbox.policy import Policy, parse_policy
from sandbox.process import ProcessBackend
from sandbox.shells import ShellRegistry
from sandbox.traffic import KINDS, REASON, Traffic
from sandbox.unconfined import UnconfinedBackend
from tests.patience import PATIENCE
from tests.sandbox.attack.suite import backend_for
from tests.sandbox.attack.world import World
from tests.tools_app.web_world import policy_for
from tools_app.builtin.shell import BASH, EXTRA, ShellAccess, shortened, under


class Calls:
    def __init__(self, access: ShellAccess, workspace: Path) -> None:
        self.access = access
        self._workspace = workspace

    async def __call__(self, command: str, **arguments: object) -> Outcome:
        context = ToolContext("sevt_1", self._workspace, extras={EXTRA: self.access})
        return await perform(BASH, context, {"command": command, **arguments})


def text(outcome: Outcome) -> str:
    return "".join(getattr(block, "text", "") for block in outcome.content)


@pytest.fixture
async def call(bubblewrap: SandboxBackend, workspace: Path, mounts: Mounts) -> AsyncIterator[Calls]:
    registry = ShellRegistry()
    policy = parse_policy({"resources": {"output_kb": 64}})
    yield Calls(ShellAccess("conv_a", registry, [bubblewrap], policy, mounts), workspace)
    await registry.close_all()


async def test_an_answer_has_output_errors_code_and_time(call: Calls):
    outcome = await call("echo out; echo err >&2; exit 3")
    said = text(outcome)
    assert said.startswith("out\n[stderr]\nerr\n[exit code 3, ")
    assert said.endswith(" s, now in /workspace]")
    assert not outcome.is_error


async def test_directory_and_variables_stay_between_calls_until_a_restart(call: Calls):
    await call("mkdir d; cd d; export A=1")
    assert text(await call("echo $PWD $A")).startswith("/workspace/d 1\n")
    assert text(await call("echo $PWD $A", restart=True)).startswith("/workspace\n")


async def test_a_late_command_says_so_and_what_to_do(call: Calls):
    outcome = await call("sleep 60", timeout=1)
    assert outcome.is_error
    assert "killed with everything it started after 1 s; give a longer timeout" in text(outcome)


@pytest.mark.parametrize("timeout", [0, 601, "long"])
async def test_a_timeout_out_of_bounds_is_refused_and_nothing_runs(call: Calls, timeout: object):  # noqa: ASYNC109
    outcome = await call("touch ran", timeout=timeout)
    assert outcome.is_error
    assert "timeout" in text(outcome)


async def test_long_output_loses_its_middle_with_a_mark(call: Calls):
    said = text(await call("seq 1 100000"))
    assert said.startswith("1\n2\n")
    assert "left out" in said
    assert "\n100000\n[exit code 0" in said
    assert len(said) < 66_000, (
        "the policy's output_kb; the harness keeps what is too long for a prompt"
    )
    assert shortened("x" * 10, 4) == "xx\n[… 6 characters left out …]\nxx"


async def test_two_conversations_have_shells_of_their_own(
    call: Calls, ground: Path, bubblewrap: SandboxBackend
):
    (ground / "other").mkdir()
    mounts = Mounts(Mount(ground / "other", Path("/workspace"), writable=True))
    access = ShellAccess("conv_b", call.access.registry, [bubblewrap], Policy(), mounts)
    other = Calls(access, ground / "other")
    await call("export A=alice; echo hers > note; cd /tmp; echo x > left")
    said = text(await other("echo [$A]; ls; ls /tmp; pwd"))
    assert said.startswith("[]\n/workspace\n")


async def test_other_rules_begin_a_new_shell(call: Calls):
    await call("export A=1")
    changed = parse_policy({"resources": {"pids": 32}})
    access = call.access
    narrowed = ShellAccess("conv_a", access.registry, access.backends, changed, access.mounts)
    call.access = narrowed
    assert text(await call("echo [$A]")).startswith("[]\n")


async def test_a_shell_ends_with_the_sandbox_that_its_environment_was_given(
    call: Calls, workspace: Path
):
    mounts = Mounts(Mount(workspace, workspace, writable=True))
    policy = parse_policy({"require": []})
    confined = ShellAccess("conv_a", call.access.registry, call.access.backends, policy, mounts)
    unconfined = UnconfinedBackend(allowed=True)
    call.access = replace(confined, backends=(), unconfined=unconfined)
    assert "[unconfined: " in text(await call("export A=1"))
    call.access = confined
    said = text(await call("echo [$A]"))
    assert "[unconfined: " not in said
    assert "[]\n" in said


async def test_no_command_runs_in_an_open_shell_where_none_may_run_by_now(
    call: Calls, workspace: Path
):
    await call("export A=1")
    refused = Unavailable("The command was not run: another sandbox is asked for.")
    call.access = replace(call.access, problem=refused)
    outcome = await call("touch ran")
    assert outcome.is_error
    assert "another sandbox is asked for" in text(outcome)
    assert not (workspace / "ran").exists()


async def test_what_cannot_be_promised_is_refused_in_words_and_nothing_runs(
    call: Calls, workspace: Path, mounts: Mounts
):
    process = made_process()
    policy = parse_policy({"network_policies": {"a": {"endpoints": [{"host": "a.example"}]}}})
    call.access = ShellAccess("conv_c", call.access.registry, [process], policy, mounts)
    outcome = await call("touch ran")
    assert outcome.is_error
    assert "its network_policies lists hosts" in text(outcome)
    assert "use the bubblewrap backend" in text(outcome)
    assert not (workspace / "ran").exists()


def made_process() -> SandboxBackend:
    backend = ProcessBackend()
    held = frozenset({Guarantee.FS_READ_CONFINED, Guarantee.FS_WRITE_CONFINED})
    backend._capabilities = Capabilities("process", available=True, guarantees=held)
    return backend


async def test_without_an_environment_the_refusal_says_so(workspace: Path):
    outcome = await perform(BASH, ToolContext("sevt_1", workspace), {"command": "true"})
    assert outcome.is_error
    assert "no environment with a sandbox" in text(outcome)


async def test_output_is_told_by_the_id_of_its_call(call: Calls):
    told: list[tuple[str, str, bytes]] = []
    access = call.access
    call.access = ShellAccess(
        "conv_d",
        access.registry,
        access.backends,
        access.policy,
        access.mounts,
        on_output=lambda *piece: told.append(piece),
    )
    await call("echo live")
    assert told == [("sevt_1", "stdout", b"live\n")]


ASK = (
    "exec 5<>/dev/tcp/127.0.0.1/3128; printf 'GET http://%s/ HTTP/1.1\\r\\n\\r\\n' {} >&5; cat <&5"
)


async def test_what_a_command_asked_its_way_out_for_is_told_with_the_rule(
    bubblewrap: SandboxBackend,
):
    """Only what was let through makes the answer one that others wrote of."""
    with World() as world:
        backend = backend_for("bubblewrap", world)
        backend._capabilities = await bubblewrap.probe()  # type: ignore[attr-defined]
        registry = ShellRegistry()
        access = ShellAccess(
            "conv_n", registry, [backend], policy_for("good.example"), world.mounts()
        )
        call = Calls(access, world.mine)
        quiet = await call("echo quiet")
        refused = await call(f"{ASK.format('evil.example')}; {ASK.format('evil.example')}")
        allowed = await call(ASK.format("good.example"))
        left = await call(f"({ASK.format('good.example')}) > late & sleep 0.01")
        after = await call("while ! grep -q welcome late; do sleep 0.05; done")
        await registry.close_all()

    record = NetworkRecord()
    assert (network(quiet), quiet.untrusted) == (record, False)
    reason = "evil.example is not listed in network_policies"
    (decision,) = network(refused).decisions
    assert (decision.method, decision.host, decision.port) == ("GET", "evil.example", 80)
    assert (decision.allowed, decision.reason, decision.times) == (False, reason, 2)
    assert (network(refused).refused, refused.untrusted) == (2, False)
    assert f"[network: GET evil.example:80 was refused: {reason}]" in text(refused)
    assert network(allowed).allowed == 1
    assert allowed.untrusted
    assert allowed.untrusted_by == "a command that reached good.example"
    assert network(left).allowed + network(after).allowed == 1, "whichever was under way then"


def network(outcome: Outcome) -> NetworkRecord:
    assert isinstance(outcome.display, CommandDisplay)
    assert outcome.display.network is not None
    return outcome.display.network


async def test_a_command_that_asks_without_end_leaves_a_short_record():
    traffic = Traffic()
    for number in range(1_000):
        traffic.note(Decision("GET", f"h{number}.example", 80, False, "x" * 10_000))
    record = traffic.take()
    assert record.refused == 1_000
    assert len(record.decisions) == KINDS
    assert max(len(one.reason) for one in record.decisions) == REASON
    assert traffic.take() == NetworkRecord()


async def test_an_unconfined_answer_says_so_and_counts_as_one_that_others_wrote(
    call: Calls, mounts: Mounts
):
    none = UnconfinedBackend(allowed=True)
    policy = parse_policy({"require": []})
    call.access = ShellAccess("conv_e", call.access.registry, [], policy, mounts, unconfined=none)
    outcome = await call("echo x")
    assert text(outcome).startswith("[unconfined: no sandbox held this command back]\n")
    assert outcome.untrusted


async def test_an_idle_shell_is_closed(bubblewrap: SandboxBackend, mounts: Mounts):
    registry = ShellRegistry(idle=0.2)
    shell, new = await registry.get("a", 1, lambda: bubblewrap.open_shell(Policy(), mounts))
    assert new
    assert registry.find("a") is shell
    async with asyncio.timeout(PATIENCE):
        while shell.alive:  # noqa: ASYNC110 - of the system's processes
            await asyncio.sleep(0.01)
    assert registry.find("a") is None
    await registry.close_all()


async def test_when_all_places_are_taken_the_longest_idle_shell_makes_room(
    bubblewrap: SandboxBackend, mounts: Mounts
):
    registry = ShellRegistry(most=1)
    first, _ = await registry.get("a", 1, lambda: bubblewrap.open_shell(Policy(), mounts))
    second, _ = await registry.get("b", 1, lambda: bubblewrap.open_shell(Policy(), mounts))
    assert not first.alive
    assert second.alive
    await registry.close_all()
    assert not second.alive


def test_the_tool_reaches_outside_as_soon_as_the_policy_opens_a_host_or_nothing_holds_it():
    assert under(Policy(), BASH).effect is Effect.WORKSPACE
    assert under(Policy(), BASH, confined=False).effect is Effect.OUTSIDE
    network = {"a": {"endpoints": [{"host": "a.example"}]}}
    assert under(parse_policy({"network_policies": network}), BASH).effect is Effect.OUTSIDE
    assert BASH.destructive
