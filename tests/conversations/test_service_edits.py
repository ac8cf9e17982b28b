"""A service that shortens by itself: what it is asked for, what is kept of it, and who then steps back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.actions.branching import edit_and_resend
from conversations.actions.choosing import Wish, choose_model
from conversations.actions.conversations import create_conversation
from conversations.actions.forking import fork_conversation
from conversations.actions.messages import post_message
from conversations.actions.redacting import redact_content
from conversations.judging import history_of
from conversations.models import Conversation
from harness.agentconfig import Shortening
from harness.events import AgentThreadContextCompacted, SpanModelRequestEnd, SpanModelRequestStart
from providers.scripted import call, reply
from spending.models import ModelPrice
from spending.models import Usage as Spent
from tests.conversations.conftest import MakeAgent, rested
from tests.standins.served import Service, serving, spoken, streamed, summed

pytestmark = pytest.mark.django_db(transaction=True)

SUMMARY = "They wanted a plan for the fair."
BLOCK = {
    "type": "compaction",
    "signature": "signed",
    "content": SUMMARY,
    "encrypted_content": "sealed",
}
USAGE = {
    "input_tokens": 900,
    "output_tokens": 20,
    "iterations": [
        {"type": "compaction", "input_tokens": 70_000, "output_tokens": 400},
        {"type": "message", "input_tokens": 900, "output_tokens": 20},
    ],
}
CLEARED = {
    "applied_edits": [
        {
            "type": "clear_tool_uses_20250919",
            "cleared_tool_uses": 4,
            "cleared_input_tokens": 30_000,
        }
    ]
}
COMPACTED = streamed(summed(SUMMARY), spoken("Second."), usage=USAGE, read=70_000)
EDITS = [
    {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 90_000},
        "keep": {"type": "tool_uses", "value": 3},
        "clear_at_least": {"type": "input_tokens", "value": 11_250},
    },
    {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 140_000}},
]
TODO = call("todo_add", content="Book the hall", active_form="Booking the hall")


@pytest.fixture
def service(settings: Any) -> Iterator[Service]:
    with serving(settings) as held:
        yield held


Begin = Callable[..., Conversation]


@pytest.fixture
def begin(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Begin:
    def make(**config: Any) -> Conversation:
        given = {"provider": "anthropic", "model": "claude-sonnet-5-5", **config}
        given = {"shortening": Shortening(by="service"), **given}
        return create_conversation(
            actor=alice,
            organisation=acme,
            agent=make_agent("Planner", **given),
            environment=environment,
        )

    return make


def said(actor: User, conversation: Conversation, text: str, times: int) -> None:
    post_message(actor=actor, conversation=conversation, text=text)
    rested(conversation, times)


def ends(conversation: Conversation) -> list[SpanModelRequestEnd]:
    rows = conversation.events.filter(type="span.model_request_end").order_by("seq")
    return [row.value for row in rows if isinstance(row.value, SpanModelRequestEnd)]


def words(service: Service) -> str:
    return str(service.last["messages"])


@pytest.fixture
def compacted(alice: User, service: Service, begin: Begin) -> Conversation:
    conversation = begin()
    service.steps = [reply(TODO), reply("First."), COMPACTED]
    said(alice, conversation, "Plan the fair.", 1)
    said(alice, conversation, "In May, please.", 2)
    return conversation


def test_its_summary_is_kept_with_what_it_took_and_goes_first_from_then_on(
    alice: User, service: Service, compacted: Conversation
) -> None:
    assert service.last["context_management"] == {"edits": EDITS}
    betas = service.api.headers[-1]["anthropic-beta"].split(",")
    assert {*betas} == {"context-management-2025-06-27", "compact-2026-01-12"}
    row = compacted.events.get(type="agent.thread_context_compacted")
    assert isinstance(row.value, AgentThreadContextCompacted)
    assert (row.value.summary, row.value.block) == (SUMMARY, BLOCK)
    end = ends(compacted)[-1]
    assert (end.model_usage.input_tokens, end.model_usage.output_tokens) == (70_900, 420)
    assert end.edited is not None
    assert end.edited.compaction is not None
    assert end.edited.compaction.input_tokens == 70_000
    history = history_of(compacted)
    assert history.context_tokens == 920
    compacted.refresh_from_db()
    assert compacted.context_tokens == 920
    assert history.usage.input_tokens == sum(
        each.model_usage.input_tokens for each in ends(compacted)
    )
    assert Spent.objects.get(model_request_id=row.value.model_request_id).input_tokens == 70_900
    said(alice, compacted, "And then?", 3)
    first, made, *behind = service.last["messages"]
    assert first["role"] == "user"
    assert made["content"] == [BLOCK, {"type": "text", "text": "Second."}]
    told = str(behind)
    assert "Book the hall" in told, "the todo list stands word for word"
    assert "In May, please." in told
    assert "First." not in words(service)
    said(alice, compacted, "And then?", 4)
    again = service.last["messages"]
    assert [each["role"] for each in again] == ["user", "assistant"] * 2 + ["user"]
    assert again[1]["content"] == made["content"], "the same from the log again"
    assert service.api.refusals == []


def test_its_summary_and_the_reply_behind_it_each_cost_what_is_said_for_their_size(
    alice: User, service: Service, begin: Begin
) -> None:
    ModelPrice.objects.all().delete()
    for size, price in ((0, 1), (70_500, 9)):
        ModelPrice.objects.create(
            provider="anthropic",
            model="claude",
            from_prompt_tokens=size,
            input=price,
            output=price,
            cache_write=price,
            cache_read=price,
        )
    conversation = begin()
    service.steps = [COMPACTED]
    said(alice, conversation, "Plan the fair.", 1)
    assert Spent.objects.get().cost == Decimal("0.071320")


def test_another_model_is_told_it_in_words_and_no_edit_where_it_has_none(
    alice: User, service: Service, compacted: Conversation
) -> None:
    wish = Wish(provider="anthropic", model="claude-opus-4-5")
    choose_model(actor=alice, conversation=compacted, wish=wish)
    said(alice, compacted, "And then?", 3)
    assert service.last["context_management"] == {"edits": EDITS[:1]}
    assert "'compaction'" not in words(service)
    assert SUMMARY in words(service)
    assert "Book the hall" in words(service)
    start = compacted.events.filter(type="span.model_request_start").order_by("seq").last()
    assert start is not None
    assert isinstance(start.value, SpanModelRequestStart)
    assert start.value.plan is not None
    assert (
        "Agentsite summarises: the model's service here does not do it" in start.value.plan.service
    )


def test_what_was_taken_out_of_the_log_is_sent_back_in_no_summary_of_the_service(
    alice: User, service: Service, compacted: Conversation
) -> None:
    message = compacted.events.filter(type="user.message").order_by("seq")[0]
    redact_content(actor=alice, conversation=compacted, event_uid=message.uid)
    said(alice, compacted, "And then?", 3)
    assert SUMMARY not in words(service)
    assert "sealed" not in words(service)
    assert "fair" not in words(service)


def test_a_fork_goes_on_from_the_same_summary_and_has_paid_for_none(
    alice: User, service: Service, compacted: Conversation
) -> None:
    last = compacted.events.filter(type="agent.message").order_by("seq").last()
    assert last is not None
    fork = fork_conversation(actor=alice, conversation=compacted, event_uid=last.uid)
    said(alice, fork, "And then?", 3)
    _first, made, *behind = service.last["messages"]
    assert made["content"] == [BLOCK, {"type": "text", "text": "Second."}]
    assert "Book the hall" in str(behind)
    assert ends(fork)[1].edited is None
    assert fork.context_tokens < 100


def test_a_summary_of_another_branch_is_not_sent(
    alice: User, service: Service, compacted: Conversation
) -> None:
    message = compacted.events.filter(type="user.message").order_by("seq")[1]
    edit_and_resend(actor=alice, conversation=compacted, message_uid=message.uid, text="In June.")
    rested(compacted, 3)
    assert "'compaction'" not in words(service)
    assert SUMMARY not in words(service)
    assert "First." in words(service)
    assert "In June." in words(service)


def test_a_reply_that_breaks_off_behind_its_summary_does_not_have_it_made_again(
    alice: User, service: Service, begin: Begin
) -> None:
    conversation = begin()
    service.steps = [reply("First."), streamed(summed(SUMMARY), usage={}, stop="")]
    said(alice, conversation, "Plan the fair.", 1)
    said(alice, conversation, "In May, please.", 2)
    end = ends(conversation)[-1]
    assert end.estimated
    assert end.model_usage.input_tokens > 1
    said(alice, conversation, "Go on.", 3)
    _first, made, behind = service.last["messages"]
    assert made["content"] == [BLOCK]
    assert "In May, please." in str(behind)
    assert "Go on." in str(behind)


def test_what_it_leaves_out_is_counted(alice: User, service: Service, begin: Begin) -> None:
    conversation = begin()
    usage = {"input_tokens": 60_000, "output_tokens": 5}
    service.steps = [streamed(spoken("Done."), usage=usage, context_management=CLEARED)]
    said(alice, conversation, "Look often.", 1)
    edited = ends(conversation)[-1].edited
    assert edited is not None
    assert (edited.cleared_results, edited.cleared_tokens) == (4, 30_000)
    history = history_of(conversation)
    assert (history.cleared, history.context_tokens) == (30_000, 60_005)
    service.steps = [reply("Again.")]
    said(alice, conversation, "Again.", 2)
    start = conversation.events.filter(type="span.model_request_start").order_by("seq").last()
    assert start is not None
    assert start.payload["plan"]["cleared"] == 30_000
