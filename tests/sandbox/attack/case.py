"""What one attack is: what it tries, what it needs held back, and how an escape would show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sandbox.contract import Result
from sandbox.guarantees import Guarantee
from sandbox.policy import Policy, parse_policy
from tests.sandbox.attack.world import World

TRIED = "attack-was-tried"
IN = "attack-got-in"
"""Printed by an attack that succeeded."""


def mark_shows(world: World, result: Result) -> bool:
    return world.mark in result.stdout.text + result.stderr.text


def says_so(_world: World, result: Result) -> bool:
    return IN in result.stdout.text


@dataclass(frozen=True)
class Case:
    name: str
    tries: str
    needs: frozenset[Guarantee]
    script: Callable[[World], str]
    """Text for bash, run in the workspace."""
    escaped: Callable[[World, Result], bool] = mark_shows
    shows: str = "the mark of the secret appears in the output"
    resources: dict[str, int] = field(default_factory=dict)
    network: bool = False
    """With a proxy that opens some hosts of the world."""
    timeout: float = 15.0
    ends: bool = True
    """It comes to its own end, so an attack that could not even be tried is noticed."""
    may_end_shell: bool = False
    """The kernel may end what watches over the command along with it; nothing has escaped by that."""
    open_field: bool = True
    """Succeeds without a sandbox on any machine, and does no harm there."""
    root_only: bool = False
    """Succeeds without a sandbox only for root."""

    def policy(self) -> Policy:
        network: dict[str, Any] = {}
        if self.network:
            hosts = ("good", "loop", "private", "meta", "mixed", "mapped", "rebind")
            open_hosts = [{"host": f"{name}.example", "ports": [80, 443]} for name in hosts]
            reading = {"host": "readonly.example", "ports": [80, 443], "methods": ["GET"]}
            network = {"attack": {"endpoints": [*open_hosts, reading]}}
        small = {"output_kb": 64, "scratch_mb": 32, "memory_mb": 256, "pids": 64}
        return parse_policy(
            {
                "require": sorted(self.needs),
                "network_policies": network,
                "resources": {**small, **self.resources},
            }
        )


def bash(text: str) -> Callable[[World], str]:
    """A script in which `{name}` stands for what the world says."""

    def script(world: World) -> str:
        filled = text
        for name, value in _known(world).items():
            filled = filled.replace("{" + name + "}", str(value))
        return f"{filled}\necho {TRIED}"

    return script


def python(text: str) -> Callable[[World], str]:
    """The same for a Python program, which may raise what it likes."""

    def script(world: World) -> str:
        filled = PRELUDE + text
        for name, value in _known(world).items():
            filled = filled.replace("{" + name + "}", str(value))
        return f"python3 - <<'END' 2>&1\n{filled}\nEND\necho {TRIED}"

    return script


PRELUDE = f"""
import ctypes, errno, os, platform, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
def call(x86, arm, *arguments):
    found = libc.syscall(ctypes.c_long(arm if ARM else x86), *arguments)
    return found, ctypes.get_errno()
def got_in(*details): print("{IN}", *details, flush=True)
"""


def _known(world: World) -> dict[str, object]:
    services = world.services
    return {
        "root": world.root,
        "outside": world.outside,
        "theirs": world.theirs,
        "mine": world.mine,
        "packages": world.packages,
        "database": world.database,
        "victim": world.victim.pid,
        "tcp": services.tcp,
        "tcp6": services.tcp6,
        "web": services.web,
        "udp": services.udp,
        "unix": services.path,
        "datagrams": services.datagrams,
        "abstract": services.abstract,
        "memory_key": world.memory_key,
        "posix": world.posix,
        "survivor": world.survivor,
        "IN": IN,
    }
