"""What runs do with answers and rules: edited input, rules that come and go, plans, taint, children."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pytest

from accounts.actions.provider_keys import store_provider_key
from accounts.models import Organisation, User
from agents.models import Environment
from approvals.actions.approvals import decide_approval
from approvals.actions.rules import revoke_rule, save_rule
from approvals.models import Approval, PolicyRule
from conversations.actions.conversations import create_conversation
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import AgentToolResult
from harness.tools import Effect, Tool
from jobs.engine import engine
from providers.scripted import Script, call, reply
from tests.approvals.asking import a_reviewer
from tests.conversations.conftest import Converse, MakeAgent, rested
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi
from tools_app.catalogue import all_tools
from tools_app.workspace import Workspace, workspace_for

pytestmark = pytest.mark.django_db(transaction=True)


def results(conversation: Conversation) -> list[AgentToolResult]:
    rows = Event.objects.filter(conversation=conversation, type="agent.tool_result").order_by("seq")
    return [value for row in rows if isinstance(value := row.value, AgentToolResult)]


def waiting(conversation: Conversation) -> Approval:
    return Approval.objects.get(conversation=conversation, state="pending")


def answer(who: User, approval: Approval, verdict: Any = "approve", **more: Any) -> Approval:
    return decide_approval(
        actor=who,
        approval=approval,
        verdict=verdict,
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
        **more,
    )


def write(path: str = "a.txt", content: str = "one") -> Any:
    return reply(call("write_file", path=path, content=content))


def test_a_call_runs_with_the_edited_input_and_the_model_is_told(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    conversation, scripted = converse([write(), reply("Done.")], features={"approval": True})
    post_message(actor=alice, conversation=conversation, text="Write.")
    rested(conversation)
    engine.stop()

    edited = {"path": "b.txt", "content": "two"}
    answer(a_reviewer(acme), waiting(conversation), edited_input=edited)
    rested(conversation, 2)

    files = Workspace(workspace_for(conversation.uid))
    assert files.read_bytes("b.txt") == b"two"
    assert [entry.name for entry in files.walk("") if entry.kind == "file"] == ["b.txt"]
    told = text_of(results(conversation)[0].content)
    assert "A person changed the input" in told
    assert "b.txt" in told
    assert "b.txt" in str(scripted.requests[-1].messages[-1])


def test_one_approval_is_for_one_call_and_the_next_one_asks_again(
    alice: User, converse: Converse
) -> None:
    conversation, _ = converse([write(), write(), reply("Done.")], features={"approval": True})
    post_message(actor=alice, conversation=conversation, text="Write twice.")
    rested(conversation)

    answer(alice, waiting(conversation))
    rested(conversation, 2)

    assert conversation.stop_reason == "requires_action"
    assert waiting(conversation).call_uid != results(conversation)[0].tool_use_id
    assert len(results(conversation)) == 1


@pytest.mark.parametrize(("scope", "asks_again"), [("run", True), ("conversation", False)])
def test_allowed_for_longer_the_same_call_does_not_ask_again_as_far_as_that_reaches(
    alice: User, converse: Converse, scope: str, asks_again: bool
) -> None:
    """The scope is the stated one, visible, and can be revoked."""
    conversation, _ = converse(
        [write(), write(), reply("One."), write(), reply("Two."), write(), reply("Three.")],
        features={"approval": True},
    )
    post_message(actor=alice, conversation=conversation, text="Write twice.")
    rested(conversation)
    answer(alice, waiting(conversation), scope=scope)
    rested(conversation, 2)
    assert [result.outcome for result in results(conversation)] == ["ok", "ok"]

    post_message(actor=alice, conversation=conversation, text="Again.")
    rested(conversation, 3)
    assert (conversation.stop_reason == "requires_action") is asks_again
    if asks_again:
        return

    revoke_rule(actor=alice, rule=PolicyRule.objects.get())
    post_message(actor=alice, conversation=conversation, text="And again.")
    rested(conversation, 4)
    assert waiting(conversation).tool == "write_file"


def test_a_rule_made_while_a_call_waits_wins_over_the_answer(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    """Deny wins, judged where the call is executed."""
    conversation, _ = converse([write(), reply("All right.")], features={"approval": True})
    post_message(actor=alice, conversation=conversation, text="Write.")
    rested(conversation)
    save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={"tool": "write_*", "permission": "always_deny"},
    )

    answer(alice, waiting(conversation))
    rested(conversation, 2)

    assert results(conversation)[0].outcome == "denied"
    assert "A rule of this organisation denies write_file" in text_of(
        results(conversation)[0].content
    )
    found = Workspace(workspace_for(conversation.uid)).walk("")
    assert [entry.path for entry in found if entry.kind == "file"] == []


def test_a_rule_of_the_server_holds_for_every_agent(
    alice: User, converse: Converse, settings: Any
) -> None:
    settings.AGENTSITE_TOOL_RULES = (
        '[{"tool": "write_file", "permission": "always_ask",'
        ' "when": {"argument": "path", "path": "live/**"}, "options": {"two_people": true}}]'
    )
    conversation, _ = converse([write("a.txt"), write("live/a.txt"), reply("Done.")])

    post_message(actor=alice, conversation=conversation, text="Write.")
    rested(conversation)

    assert [result.outcome for result in results(conversation)] == ["ok"]
    approval = waiting(conversation)
    assert approval.rule_level == "deployment"
    assert approval.needed == 2
    assert "live/**" in approval.reason


def test_a_plan_is_rejected_with_feedback_revised_and_then_approved(
    alice: User, converse: Converse
) -> None:
    conversation, scripted = converse(
        [
            reply(call("present_plan", plan="1. Delete everything")),
            reply(call("present_plan", plan="1. Write a.txt")),
            write(),
            reply("Done."),
        ],
        features={"plan_mode": True},
    )
    post_message(actor=alice, conversation=conversation, text="Plan it.")
    rested(conversation)
    first = waiting(conversation)
    assert first.input == {"plan": "1. Delete everything"}
    assert not first.may_be_settled

    decide_call(
        actor=alice,
        conversation=conversation,
        call_uid=first.call_uid,
        allow=False,
        reason="Delete nothing.",
    )
    rested(conversation, 2)
    assert "Delete nothing." in str(scripted.requests[1].messages[-1])
    assert conversation.stored_features["plan_mode"]

    answer(alice, waiting(conversation))
    rested(conversation, 3)
    assert not conversation.features.plan_mode
    assert [result.outcome for result in results(conversation)] == ["denied", "ok", "ok"]


def test_a_person_may_revise_the_plan_herself_and_the_agent_is_told(
    alice: User, converse: Converse
) -> None:
    conversation, _ = converse(
        [reply(call("present_plan", plan="1. Write a.txt")), reply("Done.")],
        features={"plan_mode": True},
    )
    post_message(actor=alice, conversation=conversation, text="Plan it.")
    rested(conversation)

    answer(alice, waiting(conversation), edited_input={"plan": "1. Write b.txt"})
    rested(conversation, 2)

    told = text_of(results(conversation)[0].content)
    assert "1. Write b.txt" in told
    assert "The plan was approved" in told


# --- untrusted content ----------------------------------------------------------------------------

_ANY = {"type": "object", "additionalProperties": True}
FETCH = Tool("fetch", "Reads a page.", _ANY, lambda _c, _g: "Evil.", Effect.READ, untrusted=True)
SEND = Tool("send", "Sends a letter.", _ANY, lambda _c, _g: "Sent.", Effect.OUTSIDE)


@pytest.fixture
def more_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = MappingProxyType({**all_tools(), "fetch": FETCH, "send": SEND})
    monkeypatch.setattr("conversations.kits.all_tools", lambda: tools)


@pytest.mark.usefixtures("more_tools")
def test_after_a_strangers_page_sending_asks_until_a_person_speaks_again(
    alice: User, converse: Converse
) -> None:
    conversation, _ = converse(
        [
            reply(call("send", to="a")),
            reply(call("fetch", url="x")),
            reply(call("send", to="b")),
            reply("Sent."),
            reply(call("send", to="c")),
            reply("Sent."),
        ]
    )
    post_message(actor=alice, conversation=conversation, text="Read and send.")
    rested(conversation)

    approval = waiting(conversation)
    assert approval.input == {"to": "b"}
    assert approval.tainted
    assert approval.risk == "high"
    assert "Untrusted content (fetch)" in approval.reason
    answer(alice, approval)
    rested(conversation, 2)

    post_message(actor=alice, conversation=conversation, text="Send once more.")
    rested(conversation, 3)
    assert conversation.stop_reason == "end_turn"
    assert [result.untrusted for result in results(conversation)] == [False, True, False, False]


# --- children -------------------------------------------------------------------------------------


@contextmanager
def messages_api(script: Script) -> Iterator[MessagesApi]:
    """The loopback service on a thread of its own."""
    loop = asyncio.new_event_loop()
    ready, over = threading.Event(), asyncio.Event()
    served: list[MessagesApi] = []

    async def serve() -> None:
        async with MessagesApi(script) as api:
            served.append(api)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield served[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(PATIENCE)
        loop.close()


def test_a_child_asks_through_the_same_queue_with_a_real_service(
    alice: User,
    bob: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    staff: User,
) -> None:
    with messages_api([write("child.txt"), reply("Done.")]) as api:
        store_provider_key(
            actor=staff,
            scope="deployment",
            provider="anthropic",
            key="key-of-this-test",
            base_url=api.base_url,
        )
        agent = make_agent(
            provider="anthropic",
            model="claude-test",
            tools=[{"tool": "write_file", "permission": "always_ask"}],
        )
        parent = create_conversation(
            actor=alice, organisation=acme, agent=agent, environment=environment
        )
        child = Conversation.objects.create(
            organisation=acme,
            owner=alice,
            parent=parent,
            agent_version=parent.agent_version,
            environment=environment,
            stored_features=parent.stored_features,
        )
        post_message(actor=alice, conversation=child, text="Write.")
        rested(child)

        reviewer = a_reviewer(acme)
        approval = Approval.objects.decidable_by(reviewer).get()
        assert approval.conversation == child
        assert approval.root == parent
        assert not Approval.objects.visible_to(bob).exists()
        answer(reviewer, approval)
        rested(child, 2)

        assert child.stop_reason == "end_turn"
        assert Workspace(workspace_for(child.uid)).read_bytes("child.txt") == b"one"
        assert len(api.requests) == 2


def test_what_its_parent_denies_a_child_may_not_do_either(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    parent, _ = converse([reply("Hello.")])
    child, _ = converse([write(), reply("All right.")])
    Conversation.objects.filter(pk=child.pk).update(parent=parent)
    save_rule(
        actor=alice,
        level="conversation",
        conversation=parent,
        rule={"tool": "write_file", "permission": "always_deny"},
    )

    post_message(actor=alice, conversation=child, text="Write.")
    rested(child)

    assert results(child)[0].outcome == "denied"
    assert "this conversation" in text_of(results(child)[0].content)
