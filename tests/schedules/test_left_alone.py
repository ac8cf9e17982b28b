"""What goes wrong elsewhere when agents are left alone: nothing is allowed because nobody is there, nothing
falls back to another model, and nothing is spent meanwhile.

An idle queue and one that feeds itself are `test_queue.py`'s, a mail loop is `test_mails.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import User
from agents.models import Agent, AgentVersion
from conversations.models import Conversation, Event
from providers.scripted import call, reply
from schedules import ending, running
from schedules.actions.orders import resume_order
from spending.models import Usage
from tests.conversations.conftest import rested
from tools_app.workspace import workspace_for

from .conftest import MakeOrder

NINE = datetime(2028, 5, 1, 9, 0, tzinfo=UTC)


def tick(now: datetime) -> None:
    running.take_due(now)
    running.begin_queued(now)
    ending.settle_ends(now)


@pytest.mark.django_db(transaction=True)
def test_a_call_that_asks_waits_for_twelve_days_and_is_neither_run_nor_paid_for(
    make_order: MakeOrder, scripted: Callable[..., Agent]
) -> None:
    asking = {"tool": "write_file", "permission": "always_ask"}
    wanted = reply(call("write_file", path="gone.txt", content="Nobody said yes."))
    agent = scripted([wanted, "Done."], tools=[{"tool": "*"}, asking])
    order = make_order(agent=agent)
    tick(NINE)
    run = order.runs.get()
    assert run.conversation is not None
    rested(run.conversation)
    paid = Usage.objects.count()

    for day in range(1, 13):
        tick(NINE + timedelta(days=day))

    run.refresh_from_db()
    assert (run.state, run.waits_for_person) == ("started", True)
    assert not (workspace_for(run.session_uid) / "gone.txt").exists()
    assert not Event.objects.filter(type="agent.tool_result").exists()
    assert order.runs.filter(skip="overlap").count() == 12
    assert (Conversation.objects.count(), Usage.objects.count()) == (1, paid)


def test_a_pinned_model_that_is_gone_begins_nothing_and_no_other_takes_its_place(
    make_order: MakeOrder, agent: Agent, alice: User
) -> None:
    order = make_order(failures_to_pause=3)
    current = agent.current
    assert current is not None
    # The version that is pinned names a model that this site does not know any more.
    config = {**current.stored_config, "model": "withdrawn"}
    AgentVersion.objects.filter(pk=current.pk).update(stored_config=config)
    for day in range(5):
        tick(NINE + timedelta(days=day))

    order.refresh_from_db()
    assert order.pause == "failures"
    assert {(run.state, run.error) for run in order.runs.all()} == {
        ("failed", "session_creation_rejected_error")
    }
    assert order.runs.count() == 3, "it does not try for ever"
    assert not Conversation.objects.exists()
    resume_order(actor=alice, order=order, now=NINE + timedelta(days=6))
    tick(NINE + timedelta(days=7))
    assert not Conversation.objects.exists()
