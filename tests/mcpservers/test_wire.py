"""Agents at `/v1` name MCP servers and say what their tools may, and read the same back."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.api.authentication import caller_with
from accounts.models import Organisation, TokenScope, User
from agents.actions.own import make_own_agent
from agents.models import Agent, Environment
from agents.narrowing import Wishes
from agui.servers import take_servers
from conversations.actions.conversations import create_conversation
from conversations.actions.sharing import share_conversation
from conversations.kits import plan_kit
from conversations.models import Conversation
from harness.agentconfig import McpUse, ToolRule
from harness.errors import Forbidden, Invalid, NotFound
from mcpservers.actions.handing import Handed
from mcpservers.actions.servers import add_server, change_server
from mcpservers.listing import Described, take_listing
from mcpservers.models import McpServer, McpTool
from mcpservers.whose import all_serving_in, serving_in
from tests.standins.mcp_server import Remote
from vaults.actions.credentials import create_credential
from vaults.actions.vaults import create_vault
from vaults.auth import NewAuth, Secrets
from vaults.models import VaultCredential

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


def test_a_name_or_an_address_that_means_another_server_here_is_refused(
    post: Any, alice: User, acme: Organisation
):
    scope = McpServer.Scope.ORGANISATION
    add_server(
        actor=alice, organisation=acme, scope=scope, name="tracker", url=SERVER["url"], look=False
    )
    assert post(mcp_servers=[SERVER], tools=[toolset()]).status_code == 200
    other = SERVER | {"url": "https://evil.example.org/"}
    answer = post(mcp_servers=[other], tools=[toolset()])
    assert answer.status_code == 400
    assert "another server" in answer.json()["error"]["message"]
    second = SERVER | {"name": "escape"}
    answer = post(mcp_servers=[second], tools=[toolset() | {"mcp_server_name": "escape"}])
    assert answer.status_code == 400
    assert "at this address already" in answer.json()["error"]["message"]
    assert McpServer.objects.count() == 1


def test_a_server_of_an_agent_is_its_own_and_another_address_is_another_server(post: Any):
    first = post(mcp_servers=[SERVER], tools=[toolset()]).json()
    other = SERVER | {"url": "https://other.example.org/mcp"}
    second = post(mcp_servers=[other], tools=[toolset()], name="Other").json()
    assert (first["mcp_servers"], second["mcp_servers"]) == ([SERVER], [other])
    server = McpServer.objects.get(agent__uid=first["id"])
    assert server.scope is McpServer.Scope.AGENT
    take_listing(server.pk, [Described(name="read", description="x", input_schema={})])
    moved = SERVER | {"url": "https://third.example.org/mcp"}
    assert post(f"/{first['id']}", mcp_servers=[moved]).json()["mcp_servers"] == [moved]
    assert McpServer.objects.get(agent__uid=second["id"]).url == other["url"]
    assert server.tools.get().state == McpTool.State.CHANGED


def test_whoever_may_use_the_agent_sees_its_server_and_mallory_does_not(
    post: Any, alice: User, bob: User, mallory: User, acme: Organisation
):
    made = post(mcp_servers=[SERVER], tools=[toolset()]).json()
    server = McpServer.objects.get()
    seen = McpServer.objects.visible_to
    assert [who.username for who in (alice, bob, mallory) if server in seen(who)] == [
        "alice",
        "bob",
    ]
    agent = Agent.objects.get(uid=made["id"])
    with pytest.raises(Forbidden):
        change_server(actor=bob, server=server, timeout_seconds=5)
    with pytest.raises(Forbidden):
        add_server(
            actor=bob,
            organisation=acme,
            scope=McpServer.Scope.AGENT,
            agent=agent,
            name="mine",
            url="https://x.example.org/",
            look=False,
        )
    # Nothing but this agent's runs uses it.
    assert server not in McpServer.objects.serving(acme.pk, alice.pk)
    assert server in McpServer.objects.serving(acme.pk, alice.pk, agents=[agent.pk])


@pytest.fixture
def session(
    alice: User, acme: Organisation, environment: Environment, remote: Remote, client: Client
) -> Any:
    """Asks for sessions of an agent that has no servers, or those of one organisation."""
    scopes = [TokenScope.CONVERSATIONS_WRITE, TokenScope.CONVERSATIONS_READ]
    token = create_token(actor=alice, organisation=acme, name="t", scopes=scopes).secret
    headers = {"Authorization": f"Bearer {token}", **BETA}

    def send(path: str = "", **body: Any) -> Any:
        given = body if path else {"environment_id": environment.uid, **body}
        return client.post(f"/v1/sessions{path}", given, "application/json", headers=headers)

    return send


def overridden(agent: Agent, **more: Any) -> dict[str, Any]:
    return {"type": "agent_with_overrides", "id": agent.uid, **more}


def test_a_session_brings_a_server_of_its_own_whose_tools_its_first_turn_has(
    session: Any, remote: Remote, make_agent: Any, acme: Organisation, alice: User, bob: User
):
    agent = make_agent(organisation=acme)
    mine = {"type": "url", "name": "mine", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "mine"}]
    made = session(agent=overridden(agent, mcp_servers=[mine], tools=tools)).json()
    assert made["agent"]["mcp_servers"] == [mine]
    conversation = Conversation.objects.get(uid=made["id"])
    server = McpServer.objects.get()
    assert (server.scope, server.owner) == (McpServer.Scope.CONVERSATION, alice)
    assert "mcp__mine__echo" in plan_kit(conversation).part.tools
    other = Conversation.objects.get(uid=session(agent=agent.uid).json()["id"])
    assert "mcp__mine__echo" not in plan_kit(other).part.tools
    assert server not in McpServer.objects.visible_to(bob)
    # What others may write does not use what is hers.
    share_conversation(actor=alice, conversation=conversation, user_uid=bob.uid, role="writer")
    assert "mcp__mine__echo" not in plan_kit(conversation).part.tools


def test_an_update_of_a_session_replaces_its_servers(
    session: Any, remote: Remote, make_agent: Any, acme: Organisation
):
    agent = make_agent(organisation=acme)
    made = session(agent=agent.uid).json()
    mine = {"type": "url", "name": "mine", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "mine"}]
    there = session(f"/{made['id']}", agent={"mcp_servers": [mine], "tools": tools})
    assert there.json()["agent"]["mcp_servers"] == [mine]
    conversation = Conversation.objects.get(uid=made["id"])
    assert "mcp__mine__echo" in plan_kit(conversation).part.tools
    # One is not taken away from under its toolset, nor the other way round.
    assert session(f"/{made['id']}", agent={"mcp_servers": []}).status_code == 400
    gone = session(f"/{made['id']}", agent={"mcp_servers": [], "tools": []})
    assert gone.json()["agent"]["mcp_servers"] == []
    assert not McpServer.objects.exists()
    conversation.refresh_from_db()
    assert "mcp__mine__echo" not in plan_kit(conversation).part.tools


def test_a_session_has_of_others_servers_no_more_than_its_agent(
    session: Any, server: McpServer, remote: Remote, make_agent: Any, acme: Organisation
):
    allowed = (ToolRule(tool="mcp:stand-in:*"),)
    agent = make_agent(organisation=acme, mcp_servers=(McpUse(name="stand-in"),), tools=allowed)
    without = make_agent("Without", organisation=acme)
    entry = {"type": "url", "name": "stand-in", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "stand-in"}]
    refused = session(agent=overridden(without, mcp_servers=[entry], tools=tools))
    assert refused.status_code == 400
    second = [toolset() | {"mcp_server_name": "second"}]
    refused = session(
        agent=overridden(without, mcp_servers=[entry | {"name": "second"}], tools=second)
    )
    assert "at this address already" in refused.json()["error"]["message"]
    elsewhere = entry | {"url": "https://x.example.org/"}
    refused = session(agent=overridden(agent, mcp_servers=[elsewhere], tools=tools))
    assert "another server" in refused.json()["error"]["message"]
    assert refused.json()["error"]["details"]["field"] == "agent.mcp_servers"
    made = session(agent=overridden(agent, mcp_servers=[entry], tools=tools)).json()
    conversation = Conversation.objects.get(uid=made["id"])
    assert "mcp__stand-in__echo" in plan_kit(conversation).part.tools
    assert ToolRule(tool="mcp:stand-in:*", permission="always_ask") in conversation.config.tools
    cleared = session(agent=overridden(agent, mcp_servers=[], tools=[])).json()
    conversation = Conversation.objects.get(uid=cleared["id"])
    assert "mcp__stand-in__echo" not in plan_kit(conversation).part.tools


def test_a_name_that_the_organisation_takes_later_opens_its_server_to_no_session(
    session: Any, remote: Remote, make_agent: Any, acme: Organisation, alice: User
):
    agent = make_agent(organisation=acme)
    mine = {"type": "url", "name": "mine", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "mine"}]
    made = session(agent=overridden(agent, mcp_servers=[mine], tools=tools)).json()
    McpServer.objects.update(url="https://x.example.org/")
    theirs = add_server(
        actor=alice,
        organisation=acme,
        scope=McpServer.Scope.ORGANISATION,
        name="mine",
        url=remote.url,
    )
    assert theirs.tools.exists()
    conversation = Conversation.objects.get(uid=made["id"])
    assert "mcp__mine__echo" not in plan_kit(conversation).part.tools


def test_nobody_gives_a_conversation_of_anothers_a_server(
    session: Any, make_agent: Any, acme: Organisation, bob: User, mallory: User
):
    made = session(agent=make_agent(organisation=acme).uid).json()
    conversation = Conversation.objects.get(uid=made["id"])
    for stranger in (bob, mallory):
        with pytest.raises(NotFound):
            add_server(
                actor=stranger,
                organisation=acme,
                scope=McpServer.Scope.CONVERSATION,
                conversation=conversation,
                name="mine",
                url="https://x.example.org/",
                look=False,
            )


def test_where_members_add_none_of_their_own_a_session_brings_none(
    session: Any, remote: Remote, make_agent: Any, acme: Organisation, settings: Any
):
    settings.AGENTSITE_MCP_PERSONAL = False
    mine = {"type": "url", "name": "mine", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "mine"}]
    agent = make_agent(organisation=acme)
    refused = session(agent=overridden(agent, mcp_servers=[mine], tools=tools))
    assert refused.status_code == 403
    assert not Conversation.objects.exists()


def test_a_token_of_a_lent_vault_is_what_a_sessions_servers_are_looked_at_with(
    session: Any,
    remote: Remote,
    make_agent: Any,
    acme: Organisation,
    alice: User,
):
    vault = create_vault(actor=alice, organisation=acme, display_name="Mine")
    create_credential(
        actor=alice,
        vault=vault,
        auth=NewAuth(
            VaultCredential.Kind.STATIC_BEARER, remote.url, Secrets(token="her-own-token-here")
        ),
    )
    agent = make_agent(organisation=acme)
    mine = {"type": "url", "name": "mine", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "mine"}]
    made = session(agent=overridden(agent, mcp_servers=[mine], tools=tools), vault_ids=[vault.uid])
    assert made.status_code == 200
    assert remote.headers[-1]["authorization"] == "Bearer her-own-token-here"
    conversation = Conversation.objects.get(uid=made.json()["id"])
    assert "mcp__mine__echo" in plan_kit(conversation).part.tools


def test_a_server_that_a_session_brings_asks_whatever_its_agent_lets_run(
    session: Any, remote: Remote, make_agent: Any, acme: Organisation
):
    """A rule on all servers was made with those of others in mind."""
    agent = make_agent(organisation=acme, tools=(ToolRule(tool="mcp:*"),))
    mine = {"type": "url", "name": "mine", "url": remote.url}
    for default in ({}, {"permission_policy": {"type": "always_allow"}}):
        tools = [toolset(default_config=default) | {"mcp_server_name": "mine"}]
        made = session(agent=overridden(agent, mcp_servers=[mine], tools=tools)).json()
        conversation = Conversation.objects.get(uid=made["id"])
        asks = ToolRule(tool="mcp:mine:*", permission="always_ask")
        assert asks in conversation.config.tools
        (shown,) = [one for one in made["agent"]["tools"] if one["type"] == "mcp_toolset"]
        assert shown["default_config"]["permission_policy"]["type"] == "always_ask"


def test_a_session_that_wants_to_be_asked_is_where_its_agents_rule_is_on_all_servers(
    session: Any, server: McpServer, remote: Remote, make_agent: Any, acme: Organisation
):
    agent = make_agent(
        organisation=acme,
        mcp_servers=(McpUse(name="stand-in"),),
        tools=(ToolRule(tool="mcp:*"),),
    )
    entry = {"type": "url", "name": "stand-in", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "stand-in"}]
    made = session(agent=overridden(agent, mcp_servers=[entry], tools=tools)).json()
    conversation = Conversation.objects.get(uid=made["id"])
    assert ToolRule(tool="mcp:stand-in:*", permission="always_ask") in conversation.config.tools


def test_where_members_add_none_of_their_own_nothing_is_connected_to(
    session: Any, remote: Remote, make_agent: Any, acme: Organisation, settings: Any
):
    settings.AGENTSITE_MCP_PERSONAL = False
    mine = {"type": "url", "name": "mine", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "mine"}]
    agent = make_agent(organisation=acme)
    assert session(agent=overridden(agent, mcp_servers=[mine], tools=tools)).status_code == 403
    assert not remote.headers


@pytest.mark.parametrize("role", ["viewer", "writer"])
def test_nobody_else_has_an_address_looked_at_with_what_the_owner_of_a_session_lent(
    session: Any,
    remote: Remote,
    make_agent: Any,
    acme: Organisation,
    alice: User,
    bob: User,
    client: Client,
    role: str,
):
    vault = create_vault(actor=alice, organisation=acme, display_name="Mine")
    auth = NewAuth(
        VaultCredential.Kind.STATIC_BEARER, remote.url, Secrets(token="her-own-token-here")
    )
    create_credential(actor=alice, vault=vault, auth=auth)
    lent = [vault.uid] if role == "viewer" else []
    made = session(agent=make_agent(organisation=acme).uid, vault_ids=lent).json()
    conversation = Conversation.objects.get(uid=made["id"])
    share_conversation(actor=alice, conversation=conversation, user_uid=bob.uid, role=role)
    scopes = [TokenScope.CONVERSATIONS_WRITE, TokenScope.CONVERSATIONS_READ]
    token = create_token(actor=bob, organisation=acme, name="t", scopes=scopes).secret
    mine = {"type": "url", "name": "mine", "url": remote.url}
    tools = [toolset() | {"mcp_server_name": "mine"}]
    answer = client.post(
        f"/v1/sessions/{made['id']}",
        {"agent": {"mcp_servers": [mine], "tools": tools}},
        "application/json",
        headers={"Authorization": f"Bearer {token}", **BETA},
    )
    assert answer.status_code == 403
    assert not remote.headers


def test_a_thread_of_a_front_end_asks_for_its_servers_and_moves_none_of_its_agents(
    server: McpServer,
    remote: Remote,
    make_agent: Any,
    acme: Organisation,
    alice: User,
    environment: Environment,
):
    agent = make_agent(
        organisation=acme,
        mcp_servers=(McpUse(name="stand-in"),),
        tools=(ToolRule(tool="mcp:*"),),
    )
    scopes = [TokenScope.CONVERSATIONS_WRITE]
    made = create_token(actor=alice, organisation=acme, name="t", scopes=scopes)
    caller = caller_with(made.secret)
    assert caller is not None
    conversation = create_conversation(
        actor=alice, organisation=acme, agent=agent, environment=environment
    )
    with pytest.raises(Invalid, match="another server"):
        take_servers(caller, conversation, [Handed("stand-in", "https://x.example.org/")])
    take_servers(caller, conversation, [Handed("mine", f"{remote.url}/of-mine")])
    conversation.refresh_from_db()
    assert ToolRule(tool="mcp:mine:*", permission="always_ask") in conversation.config.tools


def test_a_member_gives_an_agent_of_her_own_no_server(
    make_agent: Any, acme: Organisation, bob: User
):
    base = make_agent(organisation=acme)
    own = make_own_agent(
        actor=bob, organisation=acme, base=base, name="Mine", description="", wishes=Wishes()
    )
    with pytest.raises(Forbidden):
        add_server(
            actor=bob,
            organisation=acme,
            scope=McpServer.Scope.AGENT,
            agent=own,
            name="mine",
            url="https://x.example.org/",
            look=False,
        )


def test_what_serves_a_run_is_what_the_list_says_also_of_agents_that_are_bounded_and_below(
    make_agent: Any, environment: Any, acme: Organisation, elsewhere: Organisation, bob: User
):
    base, other = make_agent(organisation=acme), make_agent(organisation=acme)
    own = make_own_agent(
        actor=bob, organisation=acme, base=base, name="Mine", description="", wishes=Wishes()
    )
    place = {"actor": bob, "organisation": acme, "environment": environment}
    hers = create_conversation(agent=own, **place)
    plain = create_conversation(agent=other, **place)
    below = create_conversation(agent=other, parent=hers, **place)
    scopes: list[dict[str, Any]] = [
        {},
        {"organisation": acme},
        {"organisation": acme, "owner": bob},
        {"organisation": elsewhere},
        {"organisation": acme, "agent": base},
        {"organisation": acme, "agent": own},
        {"organisation": acme, "agent": other},
        {"organisation": acme, "owner": bob, "conversation": hers},
        {"organisation": acme, "owner": bob, "conversation": plain},
    ]
    for number, scope in enumerate(scopes):
        McpServer.objects.create(name=f"n{number}", url=f"https://x{number}.example.org/", **scope)
    found = {}
    for each in (hers, plain, below):
        asked = Conversation.objects.get(pk=each.pk)
        found[each] = [server.name for server in all_serving_in(asked)]
        assert found[each] == [server.name for server in serving_in(asked)]
    assert set(found[hers]) == {"n0", "n1", "n2", "n4", "n5", "n7"}
    assert set(found[plain]) == {"n0", "n1", "n2", "n6", "n8"}
    assert set(found[below]) == {"n0", "n1", "n2", "n6", "n7"}
