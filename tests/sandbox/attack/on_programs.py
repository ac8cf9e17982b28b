"""Attacks of programs that live beside a conversation's commands, as MCP servers do, and on their secrets."""

from __future__ import annotations

import asyncio

from sandbox.contract import Mounts, Program, SandboxBackend, SandboxFailed
from sandbox.guarantees import Guarantee
from sandbox.policy import Policy
from tests.patience import PATIENCE
from tests.sandbox.attack.on_neighbours import Scene, seen, theirs
from tests.sandbox.attack.world import World

SPY = (
    "for p in /proc/[0-9]*; do cat $p/environ $p/cmdline $p/cwd/secret.txt $p/root/workspace/secret.txt "
    "$p/fd/9; done 2>/dev/null | tr '\\0' '\\n' | grep -a mark-"
)
"""What other processes have of a mark."""


END = "echo spied"


def spied(text: str) -> str:
    """The text of a spy that came to its end. Raises SandboxFailed."""
    if "spied" not in text:
        raise SandboxFailed("The spy did not come to its end.")
    return text


async def begun(
    backend: SandboxBackend, policy: Policy, mounts: Mounts, script: str, **variables: str
) -> Program:
    argv = ("/bin/sh", "-c", script)
    return await backend.open_program(argv, policy, mounts, environment=variables)


async def said(program: Program) -> str:
    """All of it, until it ends."""
    text = b""
    async with asyncio.timeout(PATIENCE):
        while piece := await program.read():
            text += piece
    return text.decode(errors="replace")


async def read_another(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    """Of another conversation: its files, and what was declared for its own program."""
    other = await begun(
        backend, policy, theirs(world), f"exec 9< $WORKSPACE/secret.txt; cat; {world.mark}",
        API_KEY=world.mark,
    )  # fmt: skip
    places = f"{world.theirs}/secret.txt {world.outside}/secret.txt {world.database}"
    spy = f"cat {places} 2>/dev/null; {SPY}; ls /tmp $HOME/.. 2>/dev/null; cat /dev/shm/* 2>/dev/null; {END}"
    mine = await begun(backend, policy, world.mounts(), spy)
    try:
        return world.mark in spied(await said(mine))
    finally:
        await mine.close()
        await other.close()


async def read_declared(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    """By commands of the same conversation, while the program lives."""
    program = await begun(backend, policy, world.mounts(), "cat", API_KEY=world.mark)
    shell = await backend.open_shell(policy, world.mounts())
    try:
        result = await shell.run(
            f"env; {SPY}; grep -ar mark- /tmp $HOME 2>/dev/null; {END}", timeout=PATIENCE
        )
        return world.mark in spied(result.stdout.text)
    finally:
        await shell.close()
        await program.close()


async def outlive_session(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    script = (
        f"(setsid nohup sleep {world.survivor} >/dev/null 2>&1 &); "
        f"(trap '' HUP TERM; sleep {world.survivor}) & cat"
    )
    program = await begun(backend, policy, world.mounts(), script)
    began = await seen(world)
    await program.close()
    return not began or bool(world.survivors())


async def kill_another(backend: SandboxBackend, policy: Policy, world: World) -> bool:
    other = await begun(backend, policy, theirs(world), f"sleep {world.survivor}")
    mine = None
    try:
        await seen(world)
        script = "kill -9 -1; for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done; echo"
        mine = await begun(backend, policy, world.mounts(), script)
        await said(mine)
        return not world.survivors()
    finally:
        if mine is not None:
            await mine.close()
        await other.close()


SCENES = (
    Scene("program_reads_another", "another conversation's files, and the secrets of its MCP server",
          frozenset({Guarantee.FS_READ_CONFINED, Guarantee.PROCESSES_ISOLATED}), read_another,
          "the other's secret appears"),
    Scene("commands_read_program", "the secrets of a conversation's own MCP server, by its commands",
          frozenset({Guarantee.PROCESSES_ISOLATED}), read_declared, "the program's secret appears"),
    Scene("program_outlives", "an MCP server whose programs outlive its session",
          frozenset({Guarantee.NO_SURVIVORS}), outlive_session, "a process with the mark is there"),
    Scene("program_kills_another", "another conversation's MCP server",
          frozenset({Guarantee.PROCESSES_ISOLATED}), kill_another, "the other's program is gone"),
)  # fmt: skip
