"""What a run that is due asks the tables: a thousand may be due in one minute, on one core."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Organisation, User
from approvals.actions.rules import save_rule
from conversations import logsql
from conversations.models import Conversation
from schedules import ending, running
from schedules.models import OrderRun, StandingOrder

from .conftest import MakeOrder
from .test_running import end, tick

NINE = datetime(2028, 5, 1, 9, 0, tzinfo=UTC)
MOST_TO_BEGIN = 35
MOST_TO_SETTLE = 12


def asked(caught: CaptureQueriesContext) -> list[str]:
    """Without the marks of transactions."""
    marks = ("SAVEPOINT", "RELEASE", "BEGIN")
    return [each["sql"] for each in caught if not each["sql"].startswith(marks)]


@pytest.fixture
def warm(make_order: MakeOrder) -> StandingOrder:
    """What is read once in a process has been read; the next one is like all that follow."""
    first, second = make_order(name="First"), make_order(name="Second")
    tick(NINE)
    end(first.runs.get())
    end(second.runs.get())
    return make_order(name="Third")


def test_a_run_begins_and_is_settled_with_few_queries_however_many_schedules_there_are(
    warm: StandingOrder,
) -> None:
    OrderRun.objects.create(
        order=warm, agent_version=warm.agent_version, trigger="schedule", due_at=NINE
    )
    run = warm.runs.get()
    with CaptureQueriesContext(connection) as beginning:
        running.begin(run.pk, NINE, wait=False)
    run.refresh_from_db()
    assert run.state == "started"
    assert run.fingerprint
    assert len(asked(beginning)) <= MOST_TO_BEGIN, "\n".join(asked(beginning))
    OrderRun.objects.update(state="succeeded", is_settled=False)
    with CaptureQueriesContext(connection) as settling:
        ending.settle(run.pk, NINE)
    run.refresh_from_db()
    assert run.is_settled
    assert len(asked(settling)) <= MOST_TO_SETTLE, "\n".join(asked(settling))


def test_what_an_append_did_not_read_of_a_conversation_is_read_at_once(warm: StandingOrder) -> None:
    conversation = Conversation.objects.order_by("pk").last()
    assert conversation is not None
    whole = Conversation.objects.select_related("owner", "agent_version").get(pk=conversation.pk)
    held = logsql.hold(conversation.pk)
    held.title = "Changed, and not stored yet"
    with CaptureQueriesContext(connection) as reading:
        assert held.config == whole.config
        assert held.features == whole.features
        assert held.owner == whole.owner
        assert held.created_at == whole.created_at
    assert len(reading) == 1
    assert held.title == "Changed, and not stored yet"


def test_a_rule_that_is_made_between_two_runs_is_judged_by_the_second(
    warm: StandingOrder, alice: User, acme: Organisation
) -> None:
    order = warm
    tick(NINE)
    save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={"tool": "bash", "permission": "always_deny"},
    )
    end(order.runs.get())
    again = OrderRun.objects.create(
        order=order, agent_version=order.agent_version, trigger="manual"
    )
    running.begin(again.pk, NINE)
    again.refresh_from_db()
    assert [part for part, _told in again.drift] == ["tools", "rules"]
