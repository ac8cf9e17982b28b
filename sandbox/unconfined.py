"""The backend `none`: commands run as the server itself, and every result says *unconfined*.

For development machines whose operator said so in a setting; never chosen otherwise. Limits of single
processes, timeouts and bounded output hold here too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .backend import ShellBackend
from .contract import Capabilities, Mounts
from .diskwatch import DiskWatch
from .environment import environment
from .guarantees import Guarantee
from .policy import Policy
from .supervised import Start, SupervisedShell, open_supervised

NAME = "none"
SUPERVISOR = Path(__file__).parent / "inside" / "supervisor.py"
MB = 1024 * 1024
HELD = frozenset(
    {
        Guarantee.CPU_LIMITED,
        Guarantee.FILE_SIZE_LIMITED,
        Guarantee.OPEN_FILES_LIMITED,
        Guarantee.WORKSPACE_BOUNDED,
    }
)


class UnconfinedBackend(ShellBackend[SupervisedShell]):
    name = NAME

    def __init__(self, *, allowed: bool) -> None:
        """`allowed`: the operator's setting. Raises `ValueError` without it."""
        if not allowed:
            raise ValueError("the backend “none” needs the operator's explicit setting")
        super().__init__()

    async def _probe(self) -> Capabilities:
        return Capabilities(
            NAME,
            available=True,
            guarantees=HELD,
            reasons={
                guarantee: "it confines nothing" for guarantee in Guarantee if guarantee not in HELD
            },
        )

    async def _open(self, policy: Policy, mounts: Mounts) -> SupervisedShell:
        resources = policy.resources
        folders = tuple(mount.source for mount in mounts.all() if mount.writable)
        home = os.environ.get("HOME", "/")
        shell = await open_supervised(
            Start(
                argv=[sys.executable, "-I", "-S", str(SUPERVISOR), "{control}"],
                setup={
                    "env": environment(policy, home=home, tmp=os.environ.get("TMPDIR", "/tmp")),  # noqa: S108
                    "workdir": str(mounts.workdir.source),
                    "shell": "/bin/bash",
                    "nproc_above": True,
                },
                backend=NAME,
                confined=False,
                resources=resources,
                each_memory=True,
                disk=DiskWatch(
                    folders, size=resources.workspace_mb * MB, files=resources.workspace_files
                ),
            )
        )
        return self._keep(shell)
