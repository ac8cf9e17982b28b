"""The sandboxes of this process: its backends, what was found of them, and the shells that are open.

Bound to the event loop it is first used on; what probes found holds for the process. Which policy a
conversation has, and when its shell ends, is the callers' part.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from harness.errors import AgentError
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.contract import Capabilities, SandboxBackend, Unavailable
from sandbox.docker import DockerBackend
from sandbox.openshell import OpenShellBackend
from sandbox.process import ProcessBackend
from sandbox.programs import ProgramRegistry
from sandbox.shells import ShellRegistry
from sandbox.traffic import log_decision
from sandbox.unconfined import UnconfinedBackend
from tools_app.mountroots import mount_roots

logger = logging.getLogger(__name__)

NONE = "none"
"""The name of the backend that confines nothing."""

_found: dict[str, Capabilities] = {}
"""What probes of this process found, by backend."""


class Sandboxes:
    def __init__(self) -> None:
        self.shells = ShellRegistry(
            idle=settings.AGENTSITE_SHELL_IDLE_SECONDS, most=settings.AGENTSITE_SHELLS
        )
        self.programs = ProgramRegistry()
        self._backends: dict[str, SandboxBackend] = {
            name: _made(name) for name in settings.AGENTSITE_SANDBOXES
        }
        self.unconfined: SandboxBackend | None = None
        if settings.AGENTSITE_SANDBOX_UNCONFINED:
            self.unconfined = UnconfinedBackend(allowed=True)

    def preferred(self, name: str = "") -> Sequence[SandboxBackend]:
        """The backends to try for an environment that names `name`, or none in particular.

        Raises `Unavailable` for one that this server does not have.
        """
        if not name:
            return tuple(self._backends.values())
        if name == NONE:
            if self.unconfined is None:
                raise Unavailable(
                    "The command was not run: the environment asks for commands "
                    "without a sandbox, which this server does not allow.",
                    hint="Staff can choose a sandbox in the environment, or whoever runs the server "
                    "can set AGENTSITE_SANDBOX_UNCONFINED.",
                )
            return ()
        if name not in self._backends:
            raise Unavailable(
                f"The command was not run: the environment asks for the sandbox “{name}”, which this "
                "server does not use.",
                hint=f"Staff can choose another in the environment; there are: {self.names()}.",
            )
        return (self._backends[name],)

    def names(self) -> str:
        return ", ".join(self._backends) or "none"

    async def probe(self) -> Mapping[str, Capabilities]:
        """What each backend promises here, found by trying in this process until it is to be had."""
        for name, backend in self._backends.items():
            _found[name] = await (backend.look_again() if name in _found else backend.probe())
        return found()

    async def end_left(self) -> None:
        """End what processes left running outside of themselves that were killed."""
        for backend in self._backends.values():
            if isinstance(backend, DockerBackend):
                try:
                    await backend.end_left()
                except AgentError as problem:
                    logger.warning("what a killed process left could not be ended: %s", problem)

    async def close(self) -> None:
        """End every shell and whatever else runs in a sandbox of this process."""
        await self.shells.close_all()
        await self.programs.close_all()
        for backend in (*self._backends.values(), self.unconfined):
            if backend is not None:
                await backend.close()


def found() -> Mapping[str, Capabilities]:
    """What was found so far; empty before the first probe."""
    return MappingProxyType(dict(_found))


_held: tuple[asyncio.AbstractEventLoop, Sandboxes] | None = None


def sandboxes() -> Sandboxes:
    """This process's, on the running loop."""
    global _held
    loop = asyncio.get_running_loop()
    if _held is None or _held[0] is not loop:
        _held = (loop, Sandboxes())
    return _held[1]


def opened() -> Sandboxes | None:
    """The same if there are any already, from any thread; to be touched on their own loop only."""
    return _held[1] if _held is not None and not _held[0].is_closed() else None


async def close_sandboxes() -> None:
    """For the end of the process (or of its loop)."""
    global _held
    if _held is not None and _held[0] is asyncio.get_running_loop():
        held, _held = _held[1], None
        await held.close()


def _made(name: str) -> SandboxBackend:
    match name:
        case "bubblewrap":
            return BubblewrapBackend(
                found=_found.get(name), on_decision=log_decision, roots=mount_roots()
            )
        case "process":
            return ProcessBackend(found=_found.get(name), roots=mount_roots())
        case "docker":
            return DockerBackend(
                image=settings.AGENTSITE_DOCKER_IMAGE,
                found=_found.get(name),
                owners=settings.AGENTSITE_DATA_DIR / "containers",
            )
        case "openshell":
            return OpenShellBackend(
                endpoint=settings.AGENTSITE_OPENSHELL_ENDPOINT, found=_found.get(name)
            )
    raise ImproperlyConfigured(
        f"AGENTSITE_SANDBOXES names “{name}”, which is no sandbox. Choose from bubblewrap, process, "
        "docker and openshell."
    )
