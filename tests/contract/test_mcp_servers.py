"""MCP servers of agents and sessions through the official SDK, and of a run for AG-UI."""

from __future__ import annotations

import uuid
from typing import Any

import anthropic
import pytest

from providers.scripted import call, reply
from tests.contract.test_agui import Program, asks, conversation_of, said_in
from tests.contract.test_sessions import idle, listed, text
from tests.patience import until

TOKEN = "token-of-alices-vault"


def toolset(name: str, policy: str = "always_ask", **more: Any) -> dict[str, Any]:
    default = {"enabled": True, "permission_policy": {"type": policy}}
    return {"type": "mcp_toolset", "mcp_server_name": name, "default_config": default, **more}


def entry(remote, name: str) -> dict[str, Any]:
    return {"type": "url", "name": name, "url": remote.url}


def test_an_agent_has_servers_and_toolsets_and_reads_them_back(alice, make_agent, remote):
    config = {"name": "echo", "enabled": True, "permission_policy": {"type": "always_allow"}}
    off = {"name": "drop", "enabled": False}
    agent = make_agent(
        mcp_servers=[entry(remote, "agents")], tools=[toolset("agents", configs=[config, off])]
    )
    assert [each.model_dump() for each in agent.mcp_servers] == [entry(remote, "agents")]
    (shown,) = agent.tools
    assert (shown.type, shown.mcp_server_name) == ("mcp_toolset", "agents")
    assert shown.default_config.permission_policy.type == "always_ask"
    told = {each.name: each for each in shown.configs}
    assert told["echo"].permission_policy.type == "always_allow"
    assert told["drop"].enabled is False
    again = alice.beta.agents.retrieve(agent.id)
    assert again.mcp_servers == agent.mcp_servers
    unset = alice.beta.agents.update(agent.id, version=1, mcp_servers=[], tools=[])
    assert (unset.mcp_servers, unset.tools) == ([], [])


def test_a_session_brings_a_server_and_its_vault_and_the_call_asks(
    alice, mallory, world, make_agent, remote
):
    vault = alice.beta.vaults.create(display_name=f"Vault {uuid.uuid4()}")
    auth = {"type": "static_bearer", "mcp_server_url": remote.url, "token": TOKEN}
    alice.beta.vaults.credentials.create(vault.id, auth=auth)
    opening = f"Opening {uuid.uuid4()}"
    world.service.expect(opening, reply(call("mcp__hers__echo", text="ahoy")), reply("Done."))
    session = alice.beta.sessions.create(
        agent={
            "type": "agent_with_overrides",
            "id": make_agent().id,
            "mcp_servers": [entry(remote, "hers")],
            "tools": [toolset("hers")],
        },
        environment_id=world.environment,
        vault_ids=[vault.id],
        initial_events=[text(opening)],
    )
    assert [each.name for each in session.agent.mcp_servers] == ["hers"]
    # Beside what is asked for the agents of other tests, which show nothing.
    assert f"Bearer {TOKEN}" in {each.get("authorization") for each in remote.headers}
    idle(alice, session.id)
    (use,) = [one for one in listed(alice, session.id) if one.type == "agent.mcp_tool_use"]
    assert (use.name, use.mcp_server_name) == ("echo", "hers")
    assert use.evaluated_permission == "ask"
    confirmation = {"type": "user.tool_confirmation", "tool_use_id": use.id, "result": "allow"}
    alice.beta.sessions.events.send(session.id, events=[confirmation])
    until(lambda: any(one.type == "agent.mcp_tool_result" for one in listed(alice, session.id)))
    (result,) = [one for one in listed(alice, session.id) if one.type == "agent.mcp_tool_result"]
    assert (result.is_error, result.content[0].text) == (False, "you said ahoy")
    assert TOKEN not in str(listed(alice, session.id))
    idle(alice, session.id)
    without = alice.beta.sessions.update(session.id, agent={"mcp_servers": [], "tools": []})
    assert without.agent.mcp_servers == []
    with pytest.raises(anthropic.NotFoundError):
        mallory.beta.sessions.retrieve(session.id)


def test_a_front_end_hands_a_server_over_with_a_run(world, make_agent, remote):
    program = Program(world, make_agent(tools=[]).id)
    opening = f"Opening {uuid.uuid4()}"
    world.service.expect(opening, reply(call("mcp__theirs__echo", text="ahoy")), reply("Done."))
    forwarded = {"mcpServers": [{"name": "theirs", "url": remote.url}]}
    body = asks(f"thread {uuid.uuid4()}", opening).model_copy(update={"forwarded_props": forwarded})
    events = program.run(body)
    assert events[-1].outcome.type == "interrupt"
    assert conversation_of(events)
    again = program.run(body)
    assert said_in(again) == said_in(events)
    refused = program.post(
        body.model_copy(update={"forwarded_props": {"mcpServers": [{"name": "x"}]}})
    )
    assert refused.status_code == 400
    assert "forwardedProps.mcpServers" in refused.text
