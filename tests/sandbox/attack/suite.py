"""Runs the attacks against one backend and counts what escaped, what was refused, what held."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import cgroups
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.contract import Result, SandboxBackend, SandboxFailed, Unavailable
from sandbox.docker import DockerBackend
from sandbox.guarantees import Guarantee
from sandbox.openshell import OpenShellBackend
from sandbox.process import ProcessBackend
from sandbox.unconfined import UnconfinedBackend
from tests.sandbox.attack import (
    on_files,
    on_neighbours,
    on_network,
    on_packages,
    on_processes,
    on_programs,
    on_resources,
    on_returns,
)
from tests.sandbox.attack.case import TRIED, Case
from tests.sandbox.attack.engine import client_in
from tests.sandbox.attack.gateway import Gateway
from tests.sandbox.attack.on_files import mended
from tests.sandbox.attack.on_neighbours import Scene
from tests.sandbox.attack.world import PUBLIC, World

CASES: tuple[Case, ...] = (
    *on_files.CASES,
    *on_processes.CASES,
    *on_network.CASES,
    *on_resources.CASES,
    *on_packages.CASES,
)
SCENES: tuple[Scene, ...] = (*on_neighbours.SCENES, *on_programs.SCENES)
ALL: tuple[Case | Scene, ...] = (*CASES, *SCENES)
BACKENDS = ("bubblewrap", "process", "docker", "openshell", "none")
STAND_INS = ("docker", "openshell")
"""Their engines are stand-ins, which hold what they are told to hold and know no shells that last."""


@dataclass
class Report:
    backend: str
    held: list[str] = field(default_factory=list)
    escaped: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    untried: dict[str, str] = field(default_factory=dict)
    """Attacks that did not come to pass, so nothing is known."""

    @property
    def cases(self) -> int:
        return len(self.held) + len(self.escaped) + len(self.refused) + len(self.untried)

    def line(self) -> str:
        text = f"{self.backend}: cases: {self.cases}, escaped: {len(self.escaped)}"
        if self.refused:
            text += f", refused: {len(self.refused)}"
        return text + (f", not tried: {len(self.untried)}" if self.untried else "")


def harmless(case: Case) -> bool:
    """Does it succeed without a sandbox here, and do no harm?"""
    return case.open_field and (os.geteuid() == 0 or not case.root_only)


def told(case: Case) -> bool:
    """Is what holds it back said by us to the engine, and not the engine's own?"""
    own = {Guarantee.SYSCALLS_FILTERED, Guarantee.NO_NEW_PRIVILEGES}
    groups = cgroups.find()
    if groups.memory is None or groups.pids is None:
        own |= {Guarantee.MEMORY_TOTAL, Guarantee.PIDS_TOTAL}
    return not (case.needs & own or case.network or case.name == "kernel_settings")


def backend_for(name: str, world: World) -> SandboxBackend:
    async def connect(address: str, port: int):
        if address == PUBLIC:
            address, port = "127.0.0.1", world.services.web
        return await asyncio.open_connection(address, port)

    if name == "bubblewrap":
        return BubblewrapBackend(resolve=world.resolve, connect=connect)
    if name == "process":
        return ProcessBackend()
    if name == "docker":
        folder = world.root / "engine"
        folder.mkdir(exist_ok=True)
        return DockerBackend(program=str(client_in(folder)), image="tools:1")
    if name == "openshell":
        gateway = Gateway(world.root / "box")
        return OpenShellBackend(client=lambda _endpoint: gateway, spec=lambda document: document)
    return UnconfinedBackend(allowed=True)


async def attack(name: str, *, only: Sequence[str] = (), verbose: bool = False) -> Report:
    """Run all attacks, or those named, against the backend of this name."""
    report = Report(name)
    with World() as world:
        backend = backend_for(name, world)
        capabilities = await backend.probe()
        if not capabilities.available:
            for one in ALL:
                report.refused[one.name] = capabilities.problem
            return report
        chosen = [one for one in ALL if not only or one.name in only]
        if name in STAND_INS:
            chosen = [one for one in chosen if isinstance(one, Case) and told(one)]
        if name == "openshell":
            # Whoever prints so much is ended there, by design.
            chosen = [one for one in chosen if one.name != "swallowed_end"]
            chosen += [one for one in on_returns.CASES if not only or one.name in only]
        if name == "none":
            chosen = [one for one in chosen if isinstance(one, Case) and harmless(one)]
        for one in chosen:
            world.services.visits.clear()
            world.services.requests.clear()
            if not world.victim_lives():
                break  # said as an escape of the case before
            verdict = await _judge(one, backend, world, report)
            if verbose:
                print(f"  {verdict:9} {one.name}: {one.tries}", flush=True)
            _clean(world)
            if world.victim_lives():  # what was done to it must not count against the next attack
                world.unhurt = world.victims_state()
        await backend.close()
    return report


async def _judge(one: Case | Scene, backend: SandboxBackend, world: World, report: Report) -> str:
    try:
        if isinstance(one, Scene):
            escaped, tried, said = await one.act(backend, one.policy(), world), True, ""
        else:
            policy = one.policy()
            if not isinstance(backend, UnconfinedBackend):
                assert policy.required >= one.needs
            else:
                policy = policy.model_copy(update={"require": (), "network_policies": {}})
            result = await backend.run(
                one.script(world), policy, world.mounts(), timeout=one.timeout
            )
            escaped = one.escaped(world, result)
            # Where everything of the command is killed for its memory, that tells that it was tried.
            out_of_memory = result.killed_by == "memory" and Guarantee.MEMORY_TOTAL in one.needs
            tried = TRIED in result.stdout.text or out_of_memory or not one.ends
            said = _said(result)
    except Unavailable as refusal:
        report.refused[one.name] = refusal.message
        return "refused"
    except SandboxFailed as problem:
        if getattr(one, "may_end_shell", False) and any(
            word in problem.message for word in ("ended", "carried back", "larger than")
        ):
            report.held.append(one.name)
            return "held"
        report.untried[one.name] = problem.message
        return "not tried"
    if escaped:
        state = world.victims_state() if world.victim_lives() else ("gone",)
        changed = "" if state == world.unhurt else f"; the victim: {world.unhurt} -> {state}"
        report.escaped.append(f"{one.name} ({one.shows}{changed})")
        return "ESCAPED"
    if not tried:
        report.untried[one.name] = said
        return "not tried"
    report.held.append(one.name)
    return "held"


def _said(result: Result) -> str:
    text = (result.stdout.text + result.stderr.text).strip()[-200:]
    return f"{result.killed_by or result.exit_code}: {text}"


def _clean(world: World) -> None:
    for folder, folders, files in os.walk(world.mine, topdown=False):
        for path in (Path(folder, name) for name in (*files, *folders)):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    mended(world)
