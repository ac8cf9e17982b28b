"""What is asked of an agent at `/mcp` goes on as a task: kept at once, asked about, ended; nobody else's."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mcp_types as types
import pytest
from django.test import Client as Browser
from mcp import Client

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agents.models import Agent
from conversations.actions.messages import post_message
from conversations.models import Conversation, Share
from harness.agentconfig import ToolRule
from harness.content import text_of
from harness.events import UserCustomToolResult
from mcpdoor.asking import questions
from mcpdoor.serving import server_for
from mcpdoor.tools import Principal
from providers.scripted import call, reply
from tests.conversations.conftest import Converse, rested
from tests.mcpdoor.posting import META, code_of, envelope, modern, posting, request

pytestmark = pytest.mark.django_db(transaction=True)

USUAL = (TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE)
DECIDING = (*USUAL, TokenScope.APPROVALS_DECIDE)
TASKS: dict[str, Any] = {"extensions": {f"{META}tasks": {}}}
ASKS = (ToolRule(tool="*", permission="always_ask"),)
THINKS = [reply(call("think", thought="x")), reply("Done.")]


class Caller:
    """A client of one token that takes tasks."""

    def __init__(
        self, browser: Browser, who: User, where: Organisation, *scopes: TokenScope, **can: Any
    ) -> None:
        made = create_token(actor=who, organisation=where, name="t", scopes=list(scopes or USUAL))
        self._post, self._can = posting(browser, made.secret), {**TASKS, **can}

    def ask(self, method: str, **params: Any) -> Any:
        name = params.get("taskId") or params.get("name") or ""
        return self._post(request(method, params, envelope(**self._can)), modern(method, name))

    def told(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self.ask(method, **params)
        assert answer.status_code == 200, answer.content
        result: dict[str, Any] = json.loads(answer.content)["result"]
        return result

    def begun(self, conversation: Conversation) -> dict[str, Any]:
        given = {"conversation_id": conversation.uid, "text": "Go."}
        return self.told("tools/call", name="continue_conversation", arguments=given)


def test_a_task_is_there_before_its_answer_asks_its_person_and_ends_with_what_was_said(
    client: Browser, alice: User, bob: User, mallory: User, acme: Organisation,
    elsewhere: Organisation, converse: Converse,
):  # fmt: skip
    conversation, _script = converse(THINKS, tools=ASKS)
    hers = Caller(client, alice, acme, *DECIDING, elicitation={})
    begun = hers.begun(conversation)
    assert begun["resultType"] == "task"
    uid = begun["taskId"]
    assert conversation.events.filter(uid=uid, type="user.message").exists()
    rested(conversation)
    waits = hers.told("tasks/get", taskId=uid)
    assert (waits["status"], waits["resultType"]) == ("input_required", "complete")
    ((key, asked),) = waits["inputRequests"].items()
    assert "think" in asked["params"]["message"]
    assert '"thought": "x"' in asked["params"]["message"]

    for other in (
        Caller(client, bob, acme, *DECIDING),
        Caller(client, mallory, elsewhere, *DECIDING),
    ):
        for method in ("get", "cancel", "update"):
            more: dict[str, Any] = {"inputResponses": {}} if method == "update" else {}
            refused = other.ask(f"tasks/{method}", taskId=uid, **more)
            assert code_of(refused, 400) == -32602
    for less in (
        Caller(client, alice, acme, elicitation={}),
        Caller(client, alice, acme, *DECIDING),
    ):
        led = less.told("tasks/get", taskId=uid)
        assert led["status"] == "working"
        assert f"/c/{conversation.uid}/" in led["statusMessage"]

    def answered(key: str, by: Caller = hers, **said: Any) -> Any:
        return by.ask("tasks/update", taskId=uid, inputResponses={key: said})

    allowed: dict[str, Any] = {"action": "accept", "content": {"decision": "allow"}}
    assert answered(key, Caller(client, alice, acme, elicitation={}), **allowed).status_code == 200
    assert answered("sevt_other.1.x", **allowed).status_code == 200
    changed = f"{key.rpartition('.')[0]}.0000000000000000"
    assert answered(changed, **allowed).status_code == 200
    assert answered(key, action="cancel").status_code == 200
    assert code_of(answered(key, action="accept", content={"decision": "maybe"}), 400) == -32602
    assert hers.told("tasks/get", taskId=uid)["status"] == "input_required"
    assert answered(key, **allowed).status_code == 200
    rested(conversation, 2)
    assert answered(key, **allowed).status_code == 200
    hers.told("tasks/cancel", taskId=uid)
    ended = hers.told("tasks/get", taskId=uid)
    assert ended["status"] == "completed"
    assert ended["result"]["structuredContent"]["answer"] == "Done."
    assert ended["result"]["isError"] is False


def test_a_cancelled_task_is_stopped_and_what_another_wrote_is_none_of_hers(
    client: Browser, alice: User, acme: Organisation, converse: Converse
):
    conversation, _script = converse(THINKS, tools=ASKS)
    hers = Caller(client, alice, acme)
    uid = hers.begun(conversation)["taskId"]
    rested(conversation)
    assert hers.told("tasks/cancel", taskId=uid).keys() == {"resultType", "_meta"}
    rested(conversation, 2)
    assert hers.told("tasks/get", taskId=uid)["status"] == "cancelled"
    agents_own = conversation.events.get(type="agent.tool_use").uid
    assert code_of(hers.ask("tasks/get", taskId=agents_own), 400) == -32602
    forged = {"name": "continue_conversation", "arguments": {}, "requestState": "v1.forged"}
    assert code_of(hers.ask("tools/call", **forged), 400) == -32602


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_without_tasks_is_asked_in_its_call_and_what_was_said_once_is_not_said_again(
    alice: User, acme: Organisation, converse: Converse, mode: str
):
    question = {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}
    script = [reply(call("ask_user", questions=[question])), *THINKS]
    conversation, _script = converse(script, tools=ASKS)
    answers = [{"choice_1": "Blue"}, {"decision": "allow"}]

    async def answer(*_given: Any, **_named: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content=answers.pop(0))

    async def use() -> Any:
        server = server_for(Principal(alice, acme))
        async with Client(server, mode=mode, elicitation_callback=answer) as session:
            given = {"conversation_id": conversation.uid, "text": "Go.", "wait_seconds": 50}
            return await session.call_tool("continue_conversation", given)

    state = asyncio.run(use()).structured_content
    assert (state["status"], state["answer"]) == ("rests", "Done.")
    assert conversation.events.filter(type="user.message").count() == 1
    value = conversation.events.get(type="user.custom_tool_result").value
    assert isinstance(value, UserCustomToolResult)
    assert "→ Blue" in text_of(value.content)


def test_an_agents_question_is_put_to_whom_may_answer_it_alone(
    bob: User, acme: Organisation, converse: Converse
):
    question = {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}
    conversation, _script = converse([reply(call("ask_user", questions=[question]))])
    post_message(actor=conversation.owner, conversation=conversation, text="Go.")
    rested(conversation)

    def asked(who: User) -> int:
        return len(questions(Principal(who, acme), conversation))

    share = Share.objects.create(conversation=conversation, user=bob, role="viewer")
    assert (asked(conversation.owner), asked(bob)) == (1, 0)
    Share.objects.filter(pk=share.pk).update(role="writer")
    assert asked(bob) == 1
    agents = Agent.objects.filter(versions=conversation.agent_version_id)
    agents.update(organisation=acme, owner=conversation.owner, private=True)
    assert asked(bob) == 0, "she could not use the agent herself"
