"""Servers that the model's service calls by itself: who may have it so, what it is given, what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import Client
from django.urls import reverse

from accounts.actions.tokens import create_token
from accounts.models import Membership, Organisation, User
from agents.agentforms import to_config, to_fields
from agents.models import Environment
from agents.narrowing import require_within
from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation
from conversations.actions.forking import fork_conversation
from conversations.actions.lending import lend_vaults
from conversations.actions.messages import post_message
from conversations.actions.redacting import redact_content
from conversations.actions.sharing import share_conversation
from conversations.kits import plan_kit
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, McpUse, ToolRule
from harness.content import Text
from harness.errors import BadRequest, Forbidden, Invalid, NotFound, ProviderUnreachable
from harness.events import McpElsewhere
from harness.messages import Message, ModelRequest, RemoteServer, ToolSpec
from keeping.export import as_markdown
from mcpservers.actions.servers import add_server, change_server
from mcpservers.elsewhere import refusal
from mcpservers.listing import Described, take_listing
from mcpservers.models import McpServer, McpTool
from providers.scripted import call, reply
from providers.table import ProviderConfig, build
from recall.strangers import has_strangers_words
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent, rested
from tests.conversations.test_forgetting import places
from tests.standins.served import Service, serving
from tests.standins.wire import HttpFault
from vaults.actions.credentials import create_credential
from vaults.actions.vaults import create_vault
from vaults.auth import NewAuth, Secrets
from vaults.models import VaultCredential

pytestmark = pytest.mark.django_db(transaction=True)

URL = "https://mail.example.org/mcp"
TOKEN = "alices-token-for-her-mail-1234567890"
SAID = "Two new messages, said the server."
USE = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look", "server_name": "mail"}
RESULT = {
    "type": "mcp_tool_result",
    "tool_use_id": "mcptoolu_1",
    "is_error": False,
    "content": [{"type": "text", "text": SAID, "citations": None}],
}
USED = {**USE, "input": {"box": "in"}}
USES = (McpUse(name="mail", tools=("look",), through_provider=True),)
ALLOWED = (ToolRule(tool="*"), ToolRule(tool="mcp:mail:*"))


def look(
    odd: dict[str, Any] | None = None,
    *,
    result: bool = True,
    then: str = "end_turn",
    more: tuple[Any, ...] = (),
) -> HttpFault:
    """A reply in which the service calls the tool, says what came, and goes on."""
    blocks: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
        (odd, None)
        if odd
        else ({**USE, "input": {}}, {"type": "input_json_delta", "partial_json": '{"box": "in"}'}),
        *([(RESULT, None)] if result else []),
        *more,
    ]
    if then == "end_turn":
        blocks.append(
            ({"type": "text", "text": ""}, {"type": "text_delta", "text": "You have two."})
        )
    usage = {"input_tokens": 7, "output_tokens": 9}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage}
    told: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (block, delta) in enumerate(blocks):
        told.append({"type": "content_block_start", "index": index, "content_block": block})
        if delta is not None:
            told.append({"type": "content_block_delta", "index": index, "delta": delta})
        told.append({"type": "content_block_stop", "index": index})
    if then:
        told.append({"type": "message_delta", "delta": {"stop_reason": then}, "usage": usage})
        told.append({"type": "message_stop"})
    text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in told)
    return HttpFault(200, text.encode(), {"content-type": "text/event-stream"})


@pytest.fixture
def service(settings: Any) -> Iterator[Service]:
    settings.AGENTSITE_MCP_THROUGH_PROVIDER = True
    with serving(settings) as held:
        yield held


@pytest.fixture
def mail(alice: User, acme: Organisation) -> McpServer:
    return taken(alice, acme)


def taken(actor: User, acme: Organisation, scope: Any = McpServer.Scope.ORGANISATION) -> McpServer:
    """One whose tools were released, and that its manager lets model services call."""
    server = add_server(
        actor=actor, organisation=acme, scope=scope, name="mail", url=URL, look=False
    )
    schema = {"properties": {"box": {"type": "string"}}}
    names = ("look", "send")
    take_listing(
        server.pk,
        [Described(name=name, description=f"Can {name}.", input_schema=schema) for name in names],
    )
    return change_server(actor=actor, server=server, through_provider=True)


Begin = Callable[..., Conversation]


@pytest.fixture
def begin(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Begin:
    def make(
        actor: User = alice,
        *,
        features: Any = None,
        **config: Any,
    ) -> Conversation:
        given = {"provider": "anthropic", "model": "claude-sonnet-5-5", "tools": ALLOWED, **config}
        return create_conversation(
            actor=actor,
            organisation=acme,
            agent=make_agent("Mailer", mcp_servers=USES, **given),
            environment=environment,
            features=features,
        )

    return make


def said(actor: User, conversation: Conversation, times: int = 1) -> Conversation:
    post_message(actor=actor, conversation=conversation, text="Look.")
    return rested(conversation, times)


def lent(alice: User, acme: Organisation, conversation: Conversation) -> None:
    vault = create_vault(actor=alice, organisation=acme, display_name="Mine")
    auth = NewAuth(VaultCredential.Kind.STATIC_BEARER, URL, Secrets(token=TOKEN))
    create_credential(actor=alice, vault=vault, auth=auth)
    lend_vaults(actor=alice, conversation=conversation, vault_uids=[vault.uid])


def test_the_service_gets_server_and_token_and_what_it_did_is_kept_shown_and_sent_back_unchanged(
    alice: User,
    acme: Organisation,
    mail: McpServer,
    service: Service,
    begin: Begin,
    client_of: ClientOf,
):
    conversation = begin(features={"tracing": True})
    lent(alice, acme, conversation)
    service.steps = [look()]
    said(alice, conversation)
    assert service.last["mcp_servers"] == [
        {"type": "url", "name": "mail", "url": URL, "authorization_token": TOKEN}
    ]
    *_others, toolset = service.last["tools"]
    assert toolset["default_config"] == {"enabled": False}
    assert toolset["configs"] == {"look": {"enabled": True}}
    assert [tool["name"] for tool in toolset["tools"]] == ["look"]
    assert service.api.headers[-1]["anthropic-beta"] == "mcp-client-2026-09-15"
    assert "mcp__mail__look" not in [tool.get("name") for tool in service.last["tools"]]
    start = conversation.events.get(type="span.model_request_start")
    assert start.payload["servers"] == ["mail"]
    use, result = (row.value for row in conversation.events.filter(type="x.mcp_elsewhere"))
    assert isinstance(use, McpElsewhere)
    assert (use.server, use.block, result.block) == ("mail", USED, RESULT)
    page = client_of(alice).get(reverse("conversations:conversation", args=[conversation.uid]))
    shown = page.content.decode()
    assert "Executed elsewhere: look of “mail”, by the model’s service." in shown
    assert SAID in shown
    said(alice, conversation, 2)
    kept = service.last["messages"][1]["content"]
    assert kept[:2] == [USED, RESULT]
    assert service.last["mcp_servers"][0]["authorization_token"] == TOKEN
    assert places(TOKEN) == {}
    assert "conversations" in places(SAID)
    assert SAID in "".join(as_markdown(conversation))
    fork = fork_conversation(
        actor=alice, conversation=conversation, event_uid=conversation.events.last().uid
    )
    there, back = (row.value for row in fork.events.filter(type="x.mcp_elsewhere"))
    assert (back.tool_use_id, back.block) == (
        fork.events.get(payload__kind="use").uid,
        RESULT,
    )
    assert there.block == USED
    fork.delete()
    answer = conversation.events.filter(type="agent.message").first()
    redact_content(actor=alice, conversation=conversation, event_uid=answer.uid)
    assert places(SAID) == {}
    said(alice, conversation, 3)
    assert SAID not in json.dumps(service.last)


@pytest.mark.parametrize(
    ("obstacle", "why"),
    [
        ("operator", "whoever runs this server does not let"),
        ("manager", "whoever manages it does not let"),
        ("headers", "it wants headers"),
        ("held", "Held until a person has looked"),
        ("asks", "a person would have to be asked"),
        ("some arguments", "a person would have to be asked"),
        ("denied", "a person would have to be asked"),
        ("approval", "a person would have to be asked"),
    ],
)
def test_where_anything_is_in_the_way_the_service_is_given_nothing_and_the_model_told_why(
    alice: User,
    mail: McpServer,
    service: Service,
    begin: Begin,
    settings: Any,
    obstacle: str,
    why: str,
):
    rules: tuple[ToolRule, ...] = ALLOWED
    match obstacle:
        case "operator":
            settings.AGENTSITE_MCP_THROUGH_PROVIDER = False
        case "manager":
            change_server(actor=alice, server=mail, through_provider=False)
        case "headers":
            change_server(actor=alice, server=mail, headers={"X-Key": "of-the-organisation"})
        case "held":
            mail.tools.update(state=McpTool.State.CHANGED)
        case "asks":
            rules = (ToolRule(tool="*"),)
        case "some arguments":
            when = {"argument": "box", "equals": "out"}
            rules = (
                *ALLOWED,
                ToolRule.model_validate(
                    {"tool": "mcp:mail:look", "permission": "always_ask", "when": when}
                ),
            )
        case "denied":
            rules = (*ALLOWED, ToolRule(tool="mcp:mail:look", permission="always_deny"))
    features = {"approval": True} if obstacle == "approval" else None
    conversation = begin(tools=rules, features=features)
    service.steps = [look()]
    said(alice, conversation)
    assert "mcp_servers" not in service.last
    assert not any(tool.get("type") == "mcp_toolset" for tool in service.last["tools"])
    assert "mcp__mail__look" not in [tool.get("name") for tool in service.last["tools"]]
    assert "anthropic-beta" not in service.api.headers[-1]
    assert why in json.dumps([service.last["system"], service.last["messages"]])
    # What a service tells of servers that it was not given is not taken.
    assert not conversation.events.filter(type="x.mcp_elsewhere").exists()


def test_what_came_from_elsewhere_marks_the_run_until_a_person_speaks_again(
    alice: User, mail: McpServer, service: Service, begin: Begin
):
    conversation = begin()
    listed = {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {}}
    service.steps = [look(then="tool_use", more=((listed, None),))]
    said(alice, conversation)
    first, second = service.api.bodies
    assert "mcp_servers" in first
    assert "mcp_servers" not in second
    assert "Not there now: mcp__mail__look" in json.dumps(second["messages"])
    assert second["messages"][1]["content"][:2] == [USED, RESULT]
    assert has_strangers_words(conversation)
    said(alice, conversation, 2)
    assert "mcp_servers" in service.last


def test_a_use_whose_reply_broke_off_is_told_and_neither_asked_for_again_nor_sent_back(
    alice: User, mail: McpServer, service: Service, begin: Begin, client_of: ClientOf
):
    conversation = begin()
    service.steps = [look(result=False, then="")]
    said(alice, conversation)
    assert len(service.api.bodies) == 1
    page = client_of(alice).get(reverse("conversations:conversation", args=[conversation.uid]))
    assert "What came of it is not known." in page.content.decode()
    said(alice, conversation, 2)
    assert "mcp_tool_use" not in json.dumps(service.last["messages"])
    assert "was begun by the model's service with" in json.dumps(service.last["messages"])


@pytest.mark.parametrize(
    "odd",
    [
        {**USE, "input": "in"},
        {**USE, "name": ["look"], "input": {}},
        {**USE, "id": None, "input": {}},
        {**USE, "server_name": {"mail": 1}, "input": {}},
    ],
)
def test_a_service_that_tells_of_it_in_another_form_ends_the_turn_and_not_the_conversation(
    alice: User, mail: McpServer, service: Service, begin: Begin, odd: Any
):
    conversation = begin()
    service.steps = [look(odd)]
    said(alice, conversation)
    assert not conversation.events.filter(type="x.mcp_elsewhere").exists()
    said(alice, conversation, 2)
    assert conversation.events.filter(type="agent.message").exists()


def test_a_reply_that_breaks_off_before_it_says_anything_is_not_asked_for_again_either(
    alice: User, mail: McpServer, service: Service, begin: Begin
):
    text = 'event: ping\ndata: {"type": "ping"}\n\n'
    service.steps = [HttpFault(200, text.encode(), {"content-type": "text/event-stream"})]
    conversation = said(alice, begin())
    assert len(service.api.bodies) == 1
    assert not conversation.events.filter(type="session.status_rescheduled").exists()


def test_a_server_that_people_sign_in_for_is_not_named_without_a_token(
    alice: User, acme: Organisation, mail: McpServer, service: Service, begin: Begin
):
    mail.clients.create(issuer="https://login.example.org", kind="by_hand", client_id="us")
    conversation = said(alice, begin())
    assert "mcp_servers" not in service.last
    lent(alice, acme, conversation)
    said(alice, conversation, 2)
    assert service.last["mcp_servers"][0]["authorization_token"] == TOKEN


def test_a_connection_that_is_cut_behind_the_whole_request_is_not_asked_over_again_either(
    alice: User, mail: McpServer, service: Service, begin: Begin
):
    service.steps = [ProviderUnreachable("gone")]
    conversation = said(alice, begin())
    assert "mcp_servers" in service.last
    assert len(service.api.bodies) == 1
    assert not conversation.events.filter(type="session.status_rescheduled").exists()


@pytest.mark.parametrize(
    ("status", "is_put_off"),
    [(500, False), (502, False), (504, False), (408, False), (429, True), (503, True), (529, True)],
)
def test_only_what_a_service_surely_did_nothing_about_is_asked_for_again(
    alice: User, mail: McpServer, service: Service, begin: Begin, status: int, is_put_off: bool
):
    service.steps = [HttpFault(status, b"{}", {"content-type": "application/json"}), "Done."]
    conversation = said(alice, begin())
    assert "mcp_servers" in service.api.bodies[0]
    put_off = conversation.events.filter(type="session.status_rescheduled")
    assert put_off.exists() == is_put_off


def test_a_service_that_says_the_token_again_is_not_repeated(
    alice: User, acme: Organisation, mail: McpServer, service: Service, begin: Begin
):
    conversation = begin(features={"tracing": True})
    lent(alice, acme, conversation)
    error = {"type": "invalid_request_error", "message": f"Refused: {TOKEN} at {URL}."}
    body = json.dumps({"type": "error", "error": error}).encode()
    service.steps = [HttpFault(400, body, {"content-type": "application/json"})]
    said(alice, conversation)
    assert (
        "Refused: [key] at"
        in conversation.events.get(type="session.error").payload["error"]["message"]
    )
    assert places(TOKEN) == {}


def test_a_server_that_answers_the_token_back_puts_it_nowhere(
    alice: User, acme: Organisation, mail: McpServer, service: Service, begin: Begin
):
    conversation = begin(features={"tracing": True})
    lent(alice, acme, conversation)
    echoed = {**RESULT, "content": [{"type": "text", "text": f"You sent Bearer {TOKEN}."}]}
    thought = {"type": "thinking", "thinking": f"{TOKEN}?", "signature": "of-these-words"}
    spoken = ({"type": "text", "text": f"It is {TOKEN[:9]}"}, {"type": "text_delta"})
    spoken[1]["text"] = f"{TOKEN[9:]}, or {TOKEN[:5]}"
    listed = {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {"path": TOKEN}}
    more = ((echoed, None), (thought, None), spoken, (listed, None))
    service.steps = [look(result=False, then="tool_use", more=more)]
    said(alice, conversation)
    told = json.dumps(service.last["messages"])
    assert "You sent Bearer [key]." in told
    assert f"It is [key], or {TOKEN[:5]}" in told
    assert places(TOKEN) == {}
    assert TOKEN not in told
    assert "of-these-words" not in told


def test_nobody_has_the_service_call_a_server_that_she_has_no_right_to(
    alice: User, bob: User, mallory: User, acme: Organisation, service: Service, begin: Begin
):
    own = taken(alice, acme, McpServer.Scope.PERSON)
    hers, his = begin(), begin(bob)
    assert [offer.name for offer in plan_kit(hers).part.remote] == ["mail"]
    assert plan_kit(his).part.remote == ()
    said(bob, his)
    assert "mcp_servers" not in service.last
    for other in (bob, mallory):
        with pytest.raises(NotFound):
            change_server(actor=other, server=own, through_provider=True)
    assert "no right" in refusal(his, own)
    share_conversation(actor=alice, conversation=hers, user_uid=bob.uid, role="decider")
    said(alice, hers)
    assert "mcp_servers" not in service.last


def test_whoever_manages_the_server_alone_lets_services_call_it_and_takes_it_back_at_once(
    alice: User, bob: User, acme: Organisation, mail: McpServer, service: Service, begin: Begin
):
    with pytest.raises(Forbidden):
        change_server(actor=bob, server=mail, through_provider=True)
    conversation = begin(bob)
    (offer,) = plan_kit(conversation).part.remote

    async def offload(work: Any, *args: Any) -> Any:
        return await sync_to_async(work)(*args)

    def admitted() -> Any:
        return async_to_sync(offer.admit)(offload, {})

    assert admitted().tools == {"look"}
    assert admitted().token == ""
    mail.tools.update(digest="another")
    assert admitted().tools == frozenset()
    change_server(actor=alice, server=mail, through_provider=False)
    assert admitted() is None
    change_server(actor=alice, server=mail, through_provider=True)
    assert admitted() is not None
    Membership.objects.filter(user=bob).delete()
    assert admitted() is None
    change_server(actor=alice, server=mail, url="https://elsewhere.example.org/mcp")
    mail.refresh_from_db()
    assert not mail.through_provider


def test_it_is_switched_on_the_servers_page_and_over_the_api_and_stands_in_the_audit(
    alice: User, bob: User, acme: Organisation, mail: McpServer, settings: Any, client_of: ClientOf
):
    settings.AGENTSITE_MCP_THROUGH_PROVIDER = True
    page = reverse("mcpservers:server", args=[mail.uid])
    switch = reverse("mcpservers:server-switch", args=[mail.uid])
    assert "Do not let them" in client_of(alice).get(page).content.decode()
    assert "Do not let them" not in client_of(bob).get(page).content.decode()
    client_of(alice).post(switch, {"through_provider": "0"})
    mail.refresh_from_db()
    assert (mail.through_provider, mail.disabled_at) == (False, None)
    told = AuditEntry.objects.filter(action="mcp_server_changed").latest("pk")
    assert told.details["through_provider"] is False
    issued = create_token(actor=alice, organisation=acme, name="a", scopes=["admin"])
    program = Client(headers={"Authorization": f"Bearer {issued.secret}"})
    given = {"through_provider": True}
    answer = program.patch(f"/api/mcp-servers/{mail.uid}", given, "application/json")
    assert answer.json()["through_provider"] is True
    settings.AGENTSITE_MCP_THROUGH_PROVIDER = False
    assert "Do not let them" not in client_of(alice).get(page).content.decode()


def test_the_form_of_an_agent_says_it_and_who_narrows_one_does_not_add_it():
    config = AgentConfig(mcp_servers=(*USES, McpUse(name="files")))
    values = to_fields(config)
    assert values["mcp_servers"] == "mail@provider: look\nfiles"
    assert to_config(values).mcp_servers == config.mcp_servers
    local = AgentConfig(mcp_servers=(McpUse(name="mail"), McpUse(name="files")))
    require_within(local, local)
    with pytest.raises(Invalid):
        require_within(config, local)


def test_other_model_services_are_given_nothing(
    alice: User, mail: McpServer, service: Service, begin: Begin, settings: Any
):
    settings.AGENTSITE_PROVIDER_KEYS = {
        "openai_compatible": {"key": "k", "base_url": f"{service.api.base_url}/v1"}
    }
    conversation = begin(provider="openai_compatible", model="some")
    service.steps = [reply(call("mcp__mail__look", box="in"))]
    said(alice, conversation)
    assert "mail.example.org" not in json.dumps([body.get("tools") for body in service.api.bodies])
    assert "is none that calls them" in json.dumps(service.api.bodies[0]["messages"])
    (answer,) = conversation.events.filter(type="agent.tool_result")
    assert "There is no tool called mcp__mail__look" in json.dumps(answer.payload)


def test_a_service_at_an_address_that_somebody_typed_and_one_of_another_kind_refuse_to_be_given_any(
    service: Service,
):
    remote = RemoteServer("mail", URL, (ToolSpec("look", "", {"type": "object"}),), TOKEN)
    assert TOKEN not in repr(remote)
    said = (Message("user", (Text(text="Look."),)),)
    request = ModelRequest("claude-sonnet-5-5", "", said, remote=(remote,))

    async def asked(**config: Any) -> None:
        provider = build(ProviderConfig(api_key="k", base_url=service.api.base_url, **config))
        async for _piece in provider.stream(request):
            pass

    for config in (
        {"name": "anthropic", "connect": lambda timeout: httpx2.AsyncClient(timeout=timeout)},
        {"name": "openai_compatible"},
    ):
        with pytest.raises(BadRequest):
            asyncio.run(asked(**config))
    assert service.api.bodies == []
