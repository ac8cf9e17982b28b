"""Real MCP clients at `/mcp`, of both eras: agents are asked, read and stopped; nobody gets at another's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application
from django.db import connections
from django.test import Client as Browser
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agents.models import Agent, Environment
from conversations.models import Conversation
from harness.agentconfig import ToolRule
from harness.errors import Invalid
from mcpdoor.door import MOST_BYTES, MOST_PARTS
from mcpdoor.lookups import EVERY
from mcpdoor.serving import server_for
from mcpdoor.tools import Principal, perform, start, state_of
from providers.scripted import call, reply
from tests.conversations.conftest import Converse, MakeAgent, rested
from tests.mcpdoor.posting import MODERN, envelope, modern, request

pytestmark = pytest.mark.django_db(transaction=True)

ALL = (TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE)
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEADERS = {"Accept": "application/json, text/event-stream"}

Use = Callable[[Client], Coroutine[Any, Any, Any]]


def token(who: User, where: Organisation, *scopes: TokenScope) -> str:
    made = create_token(actor=who, organisation=where, name="t", scopes=scopes or ALL)
    return made.secret


def with_client(secret: str, use: Use, mode: str = "auto") -> Any:
    """What comes of using the official client with a token."""

    site: Any = get_asgi_application()

    async def go() -> Any:
        http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=site),
            headers={"Authorization": f"Bearer {secret}"},
            timeout=60,
        )
        async with http:
            transport = streamable_http_client("http://testserver/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                try:
                    return await use(client)
                finally:
                    # The site's own thread keeps its connection, which this test's database ends.
                    await sync_to_async(connections.close_all)()

    return asyncio.run(go())


def asked(name: str, **given: Any) -> Use:
    async def use(client: Client) -> Any:
        return await client.call_tool(name, given)

    return use


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return make_agent("Helper", provider="demo")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_asks_an_agent_goes_on_and_reads_the_conversation(
    alice: User, acme: Organisation, agent: Agent, environment: Environment, mode: str
):
    async def use(client: Client) -> None:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools][:2] == ["list_agents", "start_conversation"]
        agents = (await client.call_tool("list_agents", {})).structured_content
        assert agents == {"agents": [{"id": agent.uid, "name": "Helper", "description": ""}]}
        begun = await client.call_tool("start_conversation", {"agent": "Helper", "text": "Hello"})
        state = begun.structured_content
        assert state is not None
        assert state["status"] == "rests"
        assert state["answer"]
        more = {"conversation_id": state["conversation_id"], "text": "And now?"}
        again = (await client.call_tool("continue_conversation", more)).structured_content
        assert again is not None
        assert again["conversation_id"] == state["conversation_id"]
        (resource,) = (await client.list_resources()).resources
        whole = await client.read_resource(resource.uri)
        assert "And now?" in whole.contents[0].text

    with_client(token(alice, acme), use, mode)
    made = Conversation.objects.get()
    assert (made.owner, made.organisation) == (alice, acme)


def test_what_takes_long_is_stored_before_the_answer_and_what_waits_has_a_link(
    alice: User, acme: Organisation, converse: Converse
):
    rules = (ToolRule(tool="*", permission="always_ask"),)
    conversation, _script = converse([reply(call("think", thought="x"))], tools=rules)
    secret = token(alice, acme)
    given = {"conversation_id": conversation.uid, "text": "Go.", "wait_seconds": 0}
    with_client(secret, asked("continue_conversation", **given))
    assert conversation.events.filter(type="user.message").exists()
    rested(conversation)
    read = asked("read_conversation", conversation_id=conversation.uid)
    state = with_client(secret, read).structured_content
    assert state["status"] == "waits_for_person"
    use = conversation.events.get(type="agent.tool_use")
    assert state["waits_for"][0]["tool"] == "think"
    assert state["waits_for"][0]["url"].endswith(f"/c/{conversation.uid}/#u-{use.uid}")
    stopped = with_client(secret, asked("stop_conversation", conversation_id=conversation.uid))
    assert not stopped.is_error


def test_mallory_finds_nothing_of_alices_and_bob_reads_nothing_either(
    alice: User, bob: User, mallory: User, acme: Organisation, elsewhere: Organisation,
    agent: Agent, environment: Environment,
):  # fmt: skip
    whose = Principal(alice, acme)
    begun, _seconds = perform(whose, next(t for t in EVERY if t.do is start), {"text": "Secret"})
    uid = begun["conversation_id"]
    rested(Conversation.objects.get(uid=uid))
    assert state_of(whose, uid)["status"] == "rests"
    for who, where in ((bob, acme), (mallory, elsewhere)):
        secret = token(who, where)
        for name, more in (
            ("read_conversation", {}),
            ("continue_conversation", {"text": "x"}),
            ("stop_conversation", {}),
        ):
            answer = with_client(secret, asked(name, conversation_id=uid, **more))
            assert answer.is_error
            assert answer.structured_content["error"]["code"] == "not_found"

        async def use(client: Client) -> None:
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError):
                await client.read_resource(f"agentsite://conversations/{uid}")

        with_client(secret, use)


def test_a_token_does_what_its_scopes_say(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
):
    secret = token(alice, acme, TokenScope.CONVERSATIONS_READ)

    async def use(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        looks = ["calculator", "search_memories", "search_documents"]
        assert names == ["list_agents", "read_conversation", *looks]
        answer = await client.call_tool("start_conversation", {"text": "Hello"})
        assert answer.is_error

    with_client(secret, use)
    assert not Conversation.objects.exists()
    given = {"text": "Hello", "wait_seconds": 51}
    answer = with_client(token(alice, acme), asked("start_conversation", **given))
    assert answer.is_error
    assert "wait_seconds" in answer.structured_content["error"]["message"]


def test_a_text_that_says_nothing_is_refused_by_the_name_it_was_sent_under(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
):
    who = Principal(alice, acme)
    by_name = {each.name: each for each in EVERY}
    for name, more in (("start_conversation", {}), ("continue_conversation", {"text": "Hello"})):
        if more:
            begun, _seconds = perform(who, by_name["start_conversation"], more)
            more = {"conversation_id": begun["conversation_id"]}
        with pytest.raises(Invalid) as refused:
            perform(who, by_name[name], {**more, "text": " "})
        assert refused.value.field == "text"


def test_strangers_foreign_pages_and_whoever_asks_too_often_are_refused(
    alice: User, acme: Organisation, client: Browser, settings: Any
):
    secret = token(alice, acme)

    def ask(**headers: str) -> Any:
        given = {**HEADERS, **headers}
        return client.post("/mcp", json.dumps(PING), "application/json", headers=given)

    assert ask().status_code == 401
    assert ask()["WWW-Authenticate"].startswith('Bearer realm="Agentsite", resource_metadata="')
    unknown = ask(Authorization="Bearer ags_nobody")
    assert unknown.status_code == 401
    assert unknown["WWW-Authenticate"].endswith('error="invalid_token"')
    hers = f"Bearer {secret}"
    assert ask(Authorization=hers).status_code == 200
    assert ask(Authorization=hers, Origin="http://testserver").status_code == 200
    assert ask(Authorization=hers, Origin="https://evil.example").status_code == 403
    assert ask(Authorization=hers, Host="evil.example").status_code == 400
    for method in (client.get, client.delete, client.put):
        assert method("/mcp").status_code == 405
    for body in ("{", "[]", "7", '{"jsonrpc": "2.0"}', "[" * 10_000):
        answer = client.post(
            "/mcp", body, "application/json", headers={**HEADERS, "Authorization": hers}
        )
        assert answer.status_code in {400, 413, 422}, body[:20]
    settings.AGENTSITE_API_READS_PER_MINUTE = 1
    refused = [ask(Authorization=hers) for _time in range(3)][-1]
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0


def test_a_person_at_the_servers_own_machine_needs_no_token(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
):
    async def go() -> Any:
        async with Client(server_for(Principal(alice, acme))) as client:
            assert len((await client.list_tools()).tools) == len(EVERY)
            return await client.call_tool("start_conversation", {"text": "Hello"})

    assert asyncio.run(go()).structured_content["status"] == "rests"
    assert Conversation.objects.get().owner == alice


def test_a_message_of_too_many_values_is_refused_before_anybody_waits_for_it(
    alice: User, acme: Organisation, client: Browser
):
    headers = {**HEADERS, "Authorization": f"Bearer {token(alice, acme)}"}

    def post(arguments: str) -> Any:
        params = f'{{"name":"list_agents","arguments":{arguments}}}'
        body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
        return client.post("/mcp", body, "application/json", headers=headers)

    assert post("{}").status_code == 200
    assert post(f'{{"a":[{"0," * MOST_PARTS}0]}}').status_code == 413
    assert post(f'{{"a":"{"a" * MOST_BYTES}"}}').status_code == 413
    assert post(f'{{"a":"{"[,:" * 100_000}"}}').status_code == 200


@pytest.mark.parametrize("version", [None, MODERN])
@pytest.mark.parametrize(
    "odd",
    [
        *[lambda text: text.encode("utf-16"), lambda text: text.encode("utf-32-le")],
        *[lambda text: text.encode("utf-8-sig"), lambda text: text[:-1].encode()],
        lambda text: text.replace("{}", "[" * 100 + "]" * 100).encode(),
        lambda text: text.replace("{}", r'{"a": "\ud800"}').encode(),
        lambda text: text.replace("{}", '{"a": NaN}').encode(),
    ],
    ids=["utf-16", "utf-32", "mark", "half", "deep", "surrogate", "no number"],
)
def test_what_our_reader_refuses_is_handed_on_to_no_other(
    alice: User, acme: Organisation, client: Browser, version: str | None, odd: Any
):
    """Another one would read it past the limits of this one."""
    message = request(
        "tools/call", {"name": "list_agents", "arguments": {}}, version and envelope()
    )
    headers = {**HEADERS, "Authorization": f"Bearer {token(alice, acme)}"}
    if version:
        headers |= modern("tools/call", "list_agents")
    text = json.dumps(message)

    assert client.post("/mcp", text, "application/json", headers=headers).status_code == 200
    answer = client.post("/mcp", odd(text), "application/json", headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
