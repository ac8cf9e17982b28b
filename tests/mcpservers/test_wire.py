"""Agents at `/v1` name MCP servers and say what their tools may, and read the same back."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agents.models import Agent
from harness.agentconfig import ToolRule
from mcpservers.models import McpServer

pytestmark = pytest.mark.django_db

SERVER = {"type": "url", "name": "tracker", "url": "https://mcp.example.org/mcp"}
BETA = {"anthropic-beta": "managed-agents-2026-04-01"}


def toolset(**more: Any) -> dict[str, Any]:
    return {"type": "mcp_toolset", "mcp_server_name": "tracker", **more}


def config(name: str, policy: str = "", **more: Any) -> dict[str, Any]:
    wanted = {"permission_policy": {"type": policy}} if policy else {}
    return {"name": name, **wanted, **more}


@pytest.fixture
def post(alice: User, acme: Organisation, client: Client) -> Any:
    scopes = [TokenScope.AGENTS_MANAGE]
    token = create_token(actor=alice, organisation=acme, name="t", scopes=scopes).secret
    headers = {"Authorization": f"Bearer {token}", **BETA}

    def send(path: str = "", **body: Any) -> Any:
        given = {"model": "demo", "name": "Tracking", **body}
        return client.post(f"/v1/agents{path}", given, "application/json", headers=headers)

    return send


def test_an_agent_gets_a_server_and_policies_and_reads_them_back(post: Any, alice: User):
    tools = [
        toolset(
            default_config={"enabled": True, "permission_policy": {"type": "always_allow"}},
            configs=[config("write", "always_ask"), config("drop", enabled=False)],
        )
    ]
    made = post(mcp_servers=[SERVER], tools=tools).json()
    assert made["mcp_servers"] == [SERVER]
    (shown,) = [tool for tool in made["tools"] if tool["type"] == "mcp_toolset"]
    assert shown["default_config"]["permission_policy"]["type"] == "always_allow"
    told = {each["name"]: each for each in shown["configs"]}
    assert told["write"]["permission_policy"]["type"] == "always_ask"
    assert told["drop"]["enabled"] is False
    server = McpServer.objects.get()
    assert (server.name, server.owner, server.created_by) == ("tracker", None, alice)
    current = Agent.objects.get(uid=made["id"]).current
    assert current is not None
    assert current.config.tools == (
        ToolRule(tool="mcp:tracker:*"),
        ToolRule(tool="mcp:tracker:write", permission="always_ask"),
        ToolRule(tool="mcp:tracker:drop", permission="always_deny"),
    )
    # Written as it was read it is the same, and changes no version.
    again = post(f"/{made['id']}", mcp_servers=made["mcp_servers"], tools=made["tools"]).json()
    assert (again["version"], again["tools"]) == (1, made["tools"])
    only = [toolset(default_config={"enabled": False}, configs=[config("read", enabled=True)])]
    changed = post(f"/{made['id']}", tools=only).json()
    assert changed["version"] == 2
    current = Agent.objects.get(uid=made["id"]).current
    assert current is not None
    assert current.config.mcp_servers[0].tools == ("read",)
    assert not any(rule.tool.startswith("mcp:") for rule in current.config.tools)
    gone = post(f"/{made['id']}", mcp_servers=[], tools=[]).json()
    assert (gone["mcp_servers"], gone["tools"]) == ([], [])


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"mcp_servers": [SERVER]}, "mcp_toolset"),
        ({"tools": [toolset()]}, "mcp_toolset"),
        ({"mcp_servers": [SERVER], "tools": [toolset(), toolset()]}, "mcp_toolset"),
        ({"mcp_servers": [SERVER | {"url": "https://10.0.0.1/"}], "tools": [toolset()]}, "network"),
        ({"mcp_servers": [SERVER | {"name": "No"}], "tools": [toolset()]}, "name"),
        ({"mcp_servers": [SERVER | {"command": "npx"}], "tools": [toolset()]}, "command"),
    ],
)
def test_servers_and_toolsets_that_do_not_fit_are_refused_and_nothing_is_left(
    post: Any, body: dict[str, Any], word: str
):
    answer = post(**body)
    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]
    assert not McpServer.objects.exists()


def test_a_name_that_means_another_address_here_is_refused(post: Any):
    assert post(mcp_servers=[SERVER], tools=[toolset()]).status_code == 200
    other = SERVER | {"url": "https://evil.example.org/"}
    answer = post(mcp_servers=[other], tools=[toolset()])
    assert answer.status_code == 400
    assert "another server" in answer.json()["error"]["message"]
