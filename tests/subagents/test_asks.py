"""Who follows the log of the conversation that people began hears which of those below wait for a person."""

from __future__ import annotations

import pytest

from accounts.models import User
from conversations.actions.deciding import decide_call
from harness.events import load
from providers.scripted import call, reply
from subagents.asks import tell_asks, tell_left
from subagents.events import SubagentsAsk
from subagents.models import Tree

from .conftest import Lead, ask, child_of, done, scenes, told, until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_question_of_one_below_is_told_above_once_and_so_is_that_it_goes_on(
    alice: User, lead: Lead
) -> None:
    script = scenes(
        [reply(ask("alpha")), reply("Done.")],
        alpha=[reply(call("write_file", path="b.txt", content="x")), reply("Written.")],
    )
    conversation = lead(script, features={"approval": True})
    rows = conversation.events.filter(type="x.subagents_ask").order_by("seq")
    until(lambda: any(row.value.rests for row in rows.all()))
    tell_asks(conversation.pk)
    tell_left()

    asked = [row.value for row in rows.all()]
    (call_uid,) = asked[-1].all_calls
    assert len(asked[0].asking) == 1
    assert sum(each.rests for each in asked) == 1
    child = child_of(conversation.subagents.select_related("child").get())
    assert asked[0].asking[0].thread == child.uid

    # The first word of it is made up for as well, where its hint was lost.
    Tree.objects.filter(root=conversation).update(asks={})
    count = rows.count()
    tell_left()
    assert rows.count() == count + 1

    decide_call(actor=alice, conversation=child, call_uid=call_uid, allow=True)
    done(conversation)
    told(conversation)
    until(lambda: Tree.objects.get(root=conversation).asks == {})
    last = rows.last().value
    assert ([each.thread for each in last.going_on], last.rests) == ([child.uid], False)


def test_an_event_that_was_stored_once_loads() -> None:
    stored = {
        "type": "x.subagents_ask",
        "asking": [{"thread": "conv_1", "name": "explore", "calls": ["evt_1"], "known": []}],
        "going_on": [],
        "rests": True,
        "all_calls": ["evt_1"],
    }
    event = load(stored)
    assert isinstance(event, SubagentsAsk)
    assert event.asking[0].calls == ("evt_1",)
