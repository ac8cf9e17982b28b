"""MCP servers on loopback, and the conversations that use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import Organisation, User
from mcpservers.actions.servers import add_server
from mcpservers.models import McpServer
from tests.conversations.conftest import converse, environment, make_agent
from tests.standins.authorisation import AuthorisationServer
from tests.standins.mcp_server import Remote, door_of, door_of_guard, served

__all__ = ["converse", "environment", "make_agent"]


@pytest.fixture
def remote(settings: Any) -> Iterator[Remote]:
    """One that says a text again."""
    held = Remote()
    held.offer("echo")
    with served(door_of(held)) as port:
        held.url = f"http://127.0.0.1:{port}/mcp"
        settings.AGENTSITE_MCP_PRIVATE_HOSTS = [f"127.0.0.1:{port}"]
        yield held


@pytest.fixture
def guard(remote: Remote, settings: Any) -> Iterator[AuthorisationServer]:
    """Who gives tokens for the stand-in, which wants one from now on."""
    held = AuthorisationServer(resource=remote.url)
    with served(door_of_guard(held)) as port:
        held.issuer = f"http://127.0.0.1:{port}"
        settings.AGENTSITE_MCP_PRIVATE_HOSTS += [f"127.0.0.1:{port}"]
        remote.guard = held
        yield held


@pytest.fixture
def server(remote: Remote, alice: User, acme: Organisation) -> McpServer:
    """The one that alice added for her organisation, looked at once."""
    return add_server(
        actor=alice,
        organisation=acme,
        scope=McpServer.Scope.ORGANISATION,
        name="stand-in",
        url=remote.url,
        headers={"Authorization": "Bearer alices-secret-token"},
    )
