"""What all backends do alike: probe once, refuse what cannot be promised, run each command in a shell of
its own, end what is open.

What a sandbox is made of, and what a probe tries, is each backend's own part.
"""

from __future__ import annotations

import asyncio
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from .busy import checked
from .contract import Capabilities, Command, Mounts, OnOutput, Program, Result, Shell
from .policy import Policy
from .refusals import missing, refuse, refuse_rule

ShellT = TypeVar("ShellT", bound=Shell)


class ShellBackend(ABC, Generic[ShellT]):
    """See `contract.SandboxBackend`."""

    name: str

    def __init__(self, found: Capabilities | None = None) -> None:
        """`found`: what an earlier probe of this process found."""
        self._capabilities = found
        self._probing = asyncio.Lock()
        self._shells: set[ShellT] = set()

    @abstractmethod
    async def _probe(self) -> Capabilities:
        """Find out by trying. Never raises."""

    @abstractmethod
    async def _open(self, policy: Policy, mounts: Mounts) -> ShellT:
        """A shell, whatever the policy requires; see `_keep`."""

    async def probe(self) -> Capabilities:
        async with self._probing:
            if self._capabilities is None:
                self._capabilities = await self._probe()
        return self._capabilities

    async def look_again(self) -> Capabilities:
        found = await self.probe()
        return found if found.available else await self._probe_anew(found)

    async def _probe_anew(self, past: Capabilities) -> Capabilities:
        """For a backend to whom what it found is lost: probe once more, unless another call did since `past`.
        A probe that finds nothing leaves `past`, so the next call to miss it looks again."""
        async with self._probing:
            if self._capabilities is not None and self._capabilities is not past:
                return self._capabilities
            found = await self._probe()
            if found.available:
                self._capabilities = found
        return found

    async def run(
        self,
        command: Command,
        policy: Policy,
        mounts: Mounts,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result:
        await self._require(policy)
        return await self.run_unjudged(
            command, policy, mounts, timeout=timeout, on_output=on_output
        )

    async def run_unjudged(
        self,
        command: Command,
        policy: Policy,
        mounts: Mounts,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        on_output: OnOutput | None = None,
    ) -> Result:
        """For the probe, which finds out what can be required."""
        checked(command)
        text = command if isinstance(command, str) else f"exec {shlex.join(command)}"
        wall = policy.resources.wall_seconds if timeout is None else timeout
        shell = await self._open(policy, mounts)
        try:
            return await shell.run(text, timeout=wall, on_output=on_output)
        finally:
            await shell.close()
            self._shells.discard(shell)

    async def open_shell(self, policy: Policy, mounts: Mounts) -> ShellT:
        await self._require(policy)
        return await self._open(policy, mounts)

    async def open_program(
        self,
        argv: Sequence[str],
        policy: Policy,
        mounts: Mounts,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Program:
        """Those that have some override this."""
        raise refuse_rule(
            "it is a program that is spoken to while it runs",
            f"the sandbox “{self.name}” has commands alone, which run to their end",
            remedy="For the operator: use the bubblewrap or the process backend.",
        )

    async def close(self) -> None:
        for shell in tuple(self._shells):
            await shell.close()
        self._shells.clear()

    def _keep(self, shell: ShellT) -> ShellT:
        """Have the shell ended when the backend is, and forget those that ended by themselves."""
        self._shells = {one for one in self._shells if one.alive} | {shell}
        return shell

    async def _require(self, policy: Policy) -> None:
        refusal = missing(policy, await self.probe())
        if refusal is not None:
            raise refuse(policy, [refusal])
