"""Backends that work on this machine, each probed once for all tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sandbox.bubblewrap import BubblewrapBackend
from sandbox.contract import Capabilities, Mount, Mounts, SandboxBackend
from sandbox.policy import Policy, parse_policy
from sandbox.process import ProcessBackend
from sandbox.unconfined import UnconfinedBackend

MAKERS: dict[str, Callable[[], SandboxBackend]] = {
    "bubblewrap": BubblewrapBackend,
    "process": ProcessBackend,
    "none": lambda: UnconfinedBackend(allowed=True),
}
_found: dict[str, Capabilities] = {}


def made(name: str) -> SandboxBackend:
    """A backend of this name with what an earlier one found out. Skips where there is none."""
    if name not in _found:
        _found[name] = asyncio.run(MAKERS[name]().probe())
    if not _found[name].available:
        reason = f"{name}: {_found[name].problem}"
        if os.environ.get("CI") and name == "bubblewrap":
            pytest.fail(reason)
        pytest.skip(reason)
    backend = MAKERS[name]()
    if name != "none":
        backend._capabilities = _found[name]  # type: ignore[attr-defined]
    return backend


@pytest.fixture(params=list(MAKERS), scope="session")
def probed(request: pytest.FixtureRequest) -> str:
    made(request.param)
    return str(request.param)


@pytest.fixture
async def backend(probed: str) -> AsyncIterator[SandboxBackend]:
    backend = made(probed)
    yield backend
    await backend.close()


@pytest.fixture(scope="session")
def needs_bubblewrap() -> None:
    """For tests of other packages whose code starts sandboxes by itself."""
    made("bubblewrap")


@pytest.fixture
async def bubblewrap(needs_bubblewrap: None) -> AsyncIterator[SandboxBackend]:
    backend = made("bubblewrap")
    yield backend
    await backend.close()


@pytest.fixture
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a sandbox with a user of its own may pass."""
    folder = tmp_path_factory.mktemp("ground")
    for one in (folder, *folder.parents):
        if one.owner() == Path(folder).owner() and str(one).startswith("/tmp/"):
            one.chmod(one.stat().st_mode | 0o011)
    return folder


@pytest.fixture
def workspace(ground: Path) -> Path:
    folder = ground / "workspace"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def mounts(workspace: Path) -> Mounts:
    return Mounts(Mount(workspace, Path("/workspace"), writable=True, label="your workspace"))


@pytest.fixture
def policy() -> Policy:
    return parse_policy({"require": [], "resources": {"output_kb": 16, "pids": 64}})
