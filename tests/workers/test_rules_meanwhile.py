"""A call that no worker was told of yet is weighed again before one is: nobody knows how long it waits."""

from __future__ import annotations

import pytest

from api.commands import open_questions
from approvals.actions.rules import save_rule
from approvals.models import Approval
from chat.presentation.calls import card_of
from conversations.actions.deciding import decide_call
from conversations.actions.messages import set_feature
from conversations.judging import history_of
from harness.events import AgentToolResult
from providers.scripted import reply
from tests.conversations.conftest import rested, until
from tests.workers.working import RUN, WRITE, answer, only_call, taken, unanswered
from workers import items as work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("how", ["rule", "plan_mode"])
def test_no_worker_is_told_of_a_call_that_is_denied_by_then(alice, acme, begin, key, how):
    conversation = begin(RUN, reply("Done."))
    assert conversation.waits_for_worker
    if how == "rule":
        save_rule(
            actor=alice,
            level="organisation",
            rule={"tool": "bash", "permission": "always_deny"},
            organisation=acme,
        )
    else:
        set_feature(actor=alice, conversation=conversation, feature=how, enabled=True)

    item = taken(key)
    assert work.send_calls(item) == {}
    rested(conversation, 2)
    assert conversation.stop_reason == "end_turn"
    result = conversation.events.get(type="agent.tool_result").value
    assert isinstance(result, AgentToolResult)
    assert result.outcome == "denied"


def test_what_asks_by_then_is_asked_about_and_handed_out_when_it_is_allowed(alice, begin, key):
    conversation = begin(RUN, reply("Done."))
    set_feature(actor=alice, conversation=conversation, feature="approval", enabled=True)
    item = taken(key)
    call = only_call(conversation)
    assert work.send_calls(item) == {}
    rested(conversation, 2)
    assert conversation.waits_for_person
    assert Approval.objects.get(call_uid=call).state == "pending"
    assert unanswered(conversation) == 0
    rows = list(conversation.events.filter(subject=call).order_by("seq"))
    card = card_of(rows[0].value, rows)
    assert (card.asks, card.round, card.for_worker) == (True, 1, False)
    assert [fact.uid for fact in open_questions(conversation)[1]] == [call]

    decide_call(actor=alice, conversation=conversation, call_uid=call, allow=True)
    until(lambda: unanswered(conversation) == 1)
    assert list(work.send_calls(item)) == [call]
    answer(item, call)
    until(lambda: not history_of(conversation).unanswered())


def test_a_call_that_its_worker_has_is_not_taken_back(alice, begin, key):
    conversation = begin(WRITE, reply("Written."))
    item = taken(key)
    set_feature(actor=alice, conversation=conversation, feature="approval", enabled=True)
    assert list(work.send_calls(item)) == [only_call(conversation)]
