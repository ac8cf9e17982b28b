"""Attacks of one conversation's shell on another's, and on its own shell's later commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.contract import KilledBy, Mount, Mounts, SandboxBackend
from sandbox.guarantees import Guarantee
from sandbox.policy import Policy, parse_policy
from tests.sandbox.attack.world import World


@dataclass(frozen=True)
class Scene:
    """An attack that takes more than one command. The act says whether it escaped."""

    name: str
    tries: str
    needs: frozenset[Guarantee]
    act: Callable[[SandboxBackend, Policy, World], Awaitable[bool]]
    shows: str

    def policy(self) -> Policy:
        return parse_policy({"require": sorted(self.needs), "resources": {"pids": 64}})


def theirs(world: World) -> Mounts:
    return Mounts(Mount(world.theirs, Path("/workspace"), writable=True))


async def seen(world: World) -> bool:
    """Waits until a program in the background has really begun."""
    for _look in range(100):
        if world.survivors():
            return True
        await asyncio.sleep(0.05)
    return False


async def read_neighbour(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    mine = await backend.open_shell(policy, world.mounts())
    other = await backend.open_shell(policy, theirs(world))
    try:
        await other.run(f"export SECRET={world.mark}; exec 9< secret.txt; sleep 60 & echo $!")
        spy = (
            f"cat {world.theirs}/secret.txt; for p in /proc/[0-9]*; do cat $p/environ $p/cmdline "
            "$p/cwd/secret.txt $p/root/workspace/secret.txt; done 2>/dev/null | tr '\\0' '\\n' | "
            "grep -a mark-; ls /tmp /home/* 2>/dev/null"
        )
        result = await mine.run(spy, timeout=15)
        return world.mark in result.stdout.text
    finally:
        await mine.close()
        await other.close()


async def kill_neighbour(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    mine = await backend.open_shell(policy, world.mounts())
    other = await backend.open_shell(policy, theirs(world))
    try:
        await other.run(f"sleep {world.survivor} &")
        await seen(world)
        await mine.run(
            "kill -9 -1; for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done", timeout=10
        )
        return not world.survivors()
    finally:
        await mine.close()
        await other.close()


async def outlive_conversation(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    shell = await backend.open_shell(policy, world.mounts())
    await shell.run(
        f"(setsid nohup sleep {world.survivor} >/dev/null 2>&1 &); sleep {world.survivor} & "
        f"(trap '' HUP TERM; sleep {world.survivor}) &"
    )
    began = await seen(world)
    await shell.close()
    return not began or bool(world.survivors())


async def outlive_interrupt(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    shell = await backend.open_shell(policy, world.mounts())
    try:
        # Everything that the shell runs is killed with a command that was late.
        await shell.run(f"(setsid sleep {world.survivor} >/dev/null 2>&1 &)")
        await seen(world)
        late = await shell.run(f"sleep {world.survivor}", timeout=0.5)
        return late.killed_by is not KilledBy.TIMEOUT or bool(world.survivors())
    finally:
        await shell.close()


async def poison_next(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    """Can one command keep later ones from being run, or from being reported truthfully?"""
    shell = await backend.open_shell(policy, world.mounts())
    try:
        for poison in (
            "export PATH=/nowhere PS4='$(exit 9)' BASH_ENV=/workspace/evil IFS=x",
            "export BIG=$(head -c 300000 /dev/zero | tr '\\0' a)",
            "exec 29>&-; cd /; rm -rf /workspace/*; trap 'exit 77' EXIT",
            "printf '\\0/nowhere\\0exit 99' >&29",
            "kill -9 $$",
        ):
            await shell.run(poison, timeout=10)
        result = await shell.run("builtin echo fine; builtin exit 5", timeout=10)
        return result.exit_code != 5 or "fine" not in result.stdout.text
    finally:
        await shell.close()


async def leave_temporary_files(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    shell = await backend.open_shell(policy, world.mounts())
    try:
        await shell.run(f"echo {world.mark} > $TMPDIR/left; echo {world.mark} > $HOME/left")
    finally:
        await shell.close()
    other = await backend.open_shell(policy, theirs(world))
    try:
        result = await other.run(
            "cat $TMPDIR/left $HOME/left /tmp/*/left /tmp/*/*/left 2>/dev/null"
        )
    finally:
        await other.close()
    return world.mark in result.stdout.text


SCENES = (
    Scene("neighbour_read", "another conversation's files, variables and processes",
          frozenset({Guarantee.FS_READ_CONFINED, Guarantee.PROCESSES_ISOLATED}), read_neighbour,
          "the other's secret appears"),
    Scene("neighbour_kill", "another conversation's programs", frozenset({Guarantee.PROCESSES_ISOLATED}),
          kill_neighbour, "the other's program is gone"),
    Scene("outlive_conversation", "programs that outlive the conversation's end",
          frozenset({Guarantee.NO_SURVIVORS}), outlive_conversation, "a process with the mark is there"),
    Scene("outlive_interrupt", "programs that outlive the end of a late command",
          frozenset({Guarantee.NO_SURVIVORS}), outlive_interrupt, "a process with the mark is there"),
    Scene("poisoned_shell", "leaving the shell so that later commands fail or lie",
          frozenset({Guarantee.NO_SURVIVORS}), poison_next, "the next command does not report truthfully"),
    Scene("left_behind", "temporary files of an earlier conversation",
          frozenset({Guarantee.FS_READ_CONFINED}), leave_temporary_files, "the earlier secret appears"),
)  # fmt: skip
