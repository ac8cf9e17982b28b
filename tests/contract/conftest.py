"""A live server, a loopback model service, and unmodified clients of the official SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import anthropic
import pytest

from tests.contract.live import World, live_world
from tests.standins.mcp_server import Remote, door_of, served

__all__ = ["BETA", "MakeAgent", "World", "error_type"]

BETA = "managed-agents-2026-04-01"


@pytest.fixture(scope="package")
def remote() -> Iterator[Remote]:
    """An MCP server on loopback that wants no token and keeps which it was shown."""
    held = Remote()
    held.offer("echo")
    with served(door_of(held)) as port:
        held.url = f"http://127.0.0.1:{port}/mcp"
        yield held


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory, remote: Remote) -> Iterator[World]:
    settings = {"AGENTSITE_MCP_PRIVATE_HOSTS": urlsplit(remote.url).netloc}
    with live_world(tmp_path_factory.mktemp("contract"), settings=settings) as found:
        yield found


@pytest.fixture
def alice(world: World) -> anthropic.Anthropic:
    return world.client()


@pytest.fixture
def staff(world: World) -> anthropic.Anthropic:
    return world.client("staff")


@pytest.fixture
def mallory(world: World) -> anthropic.Anthropic:
    return world.client("mallory")


MakeAgent = Callable[..., "anthropic.types.beta.BetaManagedAgentsAgent"]


@pytest.fixture
def make_agent(alice: anthropic.Anthropic, request: pytest.FixtureRequest) -> MakeAgent:
    """An agent of alice's that speaks to the loopback model service."""
    made = iter(range(100))

    def make(**values: object) -> anthropic.types.beta.BetaManagedAgentsAgent:
        options = {"model": "claude-sonnet-5-5", **values}
        name = f"{request.node.name[:70]} {next(made)}"
        return alice.beta.agents.create(name=name, **options)  # type: ignore[arg-type]

    return make


def error_type(caught: Any) -> str:
    """The type in the envelope that the SDK raised for."""
    error: str = caught.value.response.json()["error"]["type"]
    return error
