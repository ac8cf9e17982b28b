"""All that waits for a time is on one page, and its owner has it now, later or never."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Agent
from brief.actions.wishes import set_brief
from conversations.actions.wakes import LONGEST_DELAY, drop_wake, hasten_wake, put_off_wake
from conversations.log import append
from conversations.models import BackgroundCommand, Conversation, Event, Share, Wake
from harness.errors import Conflict, Forbidden, Invalid, NotFound, ToolError
from harness.events import WakeRequested
from harness.history import Entry
from harness.tools import ToolContext
from providers.scripted import call, reply
from schedules import running
from schedules.actions.orders import put_off_order
from schedules.models import OrderRun
from teams_app.models import Team, Teammate
from tests.cast import ClientOf
from tests.conversations.conftest import rested
from tests.schedules.conftest import (
    MONDAY,
    MakeOrder,
    agent,
    draft,
    environment,
    make_agent,
    make_order,
    scripted,
)
from timers.listing import Timer, timers_of
from tools_app.builtin.wakes import MAX_DELAY, continue_later

__all__ = ["agent", "draft", "environment", "make_agent", "make_order", "scripted"]

NINE = datetime(2028, 5, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def sleeping(alice: User, acme: Organisation, make_order: MakeOrder) -> Conversation:
    """A conversation that asked to be woken in ten minutes."""
    order = make_order(cron="", name="By hand")
    conversation = Conversation.objects.create(
        organisation=acme,
        owner=alice,
        agent_version=order.agent_version,
        environment=order.environment,
        title="Prices",
    )
    append(conversation.pk, [Entry.of(WakeRequested(delay_seconds=600, reason="Look again"))])
    return conversation


def seen(user: User, organisation: Organisation) -> list[tuple[str, str, str]]:
    return [(each.kind, each.name, each.reason) for each in timers_of(user, organisation)]


def the_timer(user: User, organisation: Organisation, kind: str) -> Timer:
    [found] = [each for each in timers_of(user, organisation) if each.kind == kind]
    return found


# --- the page -------------------------------------------------------------------------------------


def test_one_list_has_schedules_sleepers_teammates_background_work_and_the_brief(
    alice: User, acme: Organisation, sleeping: Conversation, make_order: MakeOrder
) -> None:
    make_order()
    child = Conversation.objects.create(
        organisation=acme,
        owner=alice,
        parent=sleeping,
        agent_version=sleeping.agent_version,
        environment=sleeping.environment,
    )
    team = Team.objects.create(lead=sleeping)
    Teammate.objects.create(team=team, name="anna", conversation=child, told="idle")
    append(child.pk, [Entry.of(WakeRequested(delay_seconds=60, reason="Ask the lead"))])
    BackgroundCommand.objects.create(
        conversation=sleeping,
        call_uid="call",
        command="make all",
        output_path="out",
        timeout_seconds=1,
        host="here",
        boot="1",
        pid=1,
        seen_at=NINE,
        started_at=NINE,
    )
    set_brief(actor=alice, organisation=acme, is_on=True, at=time(8), zone="UTC", now=NINE)

    assert seen(alice, acme) == [
        ("wake", "Prices", "Ask the lead"),
        ("wake", "Prices", "Look again"),
        ("schedule", "Morning look", ""),
        ("brief", "", ""),
        ("command", "Prices", "make all"),
    ]
    assert [each.whose for each in timers_of(alice, acme)][:2] == ["anna", ""]


def test_others_see_none_and_readers_see_what_they_cannot_change(
    client_of: ClientOf,
    alice: User,
    bob: User,
    mallory: User,
    acme: Organisation,
    sleeping: Conversation,
) -> None:
    timer = the_timer(alice, acme, "wake")
    wake = Wake.objects.get()
    for other in (bob, mallory):
        assert seen(other, acme) == []
        answer = client_of(other).post(timer.address, {"act": "cancel"})
        assert answer.status_code == 404
    Share.objects.create(conversation=sleeping, user=bob, role="viewer")

    assert the_timer(bob, acme, "wake").key == ""
    with pytest.raises(Forbidden):
        drop_wake(actor=bob, wake=wake)
    assert Wake.objects.waiting().exists()


@pytest.mark.parametrize("act", ["now", "later", "cancel"])
def test_the_three_buttons_of_a_sleeping_conversation(
    client_of: ClientOf, alice: User, acme: Organisation, sleeping: Conversation, act: str
) -> None:
    due = Wake.objects.get().due_at
    client = client_of(alice)
    assert "Look again" in client.get(reverse("timers:timers")).content.decode()

    answer = client.post(the_timer(alice, acme, "wake").address, {"act": act})

    assert answer.status_code == 302
    wake = Wake.objects.get()
    if act == "now":
        assert wake.due_at <= timezone.now()
    elif act == "later":
        assert wake.due_at == due + timedelta(hours=1)
    else:
        assert wake.state == "cancelled"


def test_the_page_of_a_conversation_says_what_it_waits_for_and_changes_it_in_place(
    client_of: ClientOf, alice: User, acme: Organisation, sleeping: Conversation
) -> None:
    client = client_of(alice)
    page = client.get(sleeping.get_absolute_url()).content.decode()
    assert "Look again" in page
    assert "Sleeps until it is woken" in page
    address = the_timer(alice, acme, "wake").address

    strip = client.post(address, {"act": "cancel"}, headers={"HX-Request": "true"})

    assert strip.content == b""
    again = client.post(address, {"act": "now"}, headers={"HX-Request": "true"})
    assert again.status_code == 200
    assert client.post(address, {"act": "now"}, follow=True).status_code == 200
    assert Wake.objects.get().state == "cancelled"


def test_a_wake_is_put_off_by_a_month_at_most_and_only_while_it_waits(
    alice: User, mallory: User, sleeping: Conversation
) -> None:
    wake = Wake.objects.get()
    for wrong in (timedelta(0), LONGEST_DELAY + timedelta(seconds=1)):
        with pytest.raises(Invalid):
            put_off_wake(actor=alice, wake=wake, by=wrong)
    with pytest.raises(NotFound):
        hasten_wake(actor=mallory, wake=wake)
    Wake.objects.update(state="done")
    with pytest.raises(Conflict):
        hasten_wake(actor=alice, wake=wake)


@pytest.mark.django_db(transaction=True)
def test_a_sleeper_that_is_woken_now_goes_on_once(
    alice: User, acme: Organisation, make_order: MakeOrder, scripted: Callable[..., Agent]
) -> None:
    sleeper = scripted(
        [reply(call("continue_later", seconds=600, reason="look")), "Zzz.", "Awake."]
    )
    make_order(agent=sleeper)
    running.take_due(NINE)
    running.begin_queued(NINE)
    conversation = OrderRun.objects.get().conversation
    assert conversation is not None
    rested(conversation)

    hasten_wake(actor=alice, wake=Wake.objects.get())

    rested(conversation, times=2)
    assert Event.objects.filter(conversation=conversation, type="x.wake_due").count() == 1


# --- schedules ------------------------------------------------------------------------------------


def test_a_schedule_that_is_put_off_is_due_once_later_and_then_as_ever(
    alice: User, make_order: MakeOrder
) -> None:
    order = make_order()
    put_off_order(actor=alice, order=order, by=timedelta(hours=2), now=MONDAY)

    for hour in range(24 * 3):
        running.take_due(MONDAY + timedelta(hours=hour))

    runs = OrderRun.objects.order_by("due_at").values_list("due_at", "state", "skip")
    assert list(runs) == [
        (NINE, "skipped", "person"),
        (NINE + timedelta(hours=2), "queued", ""),
        (NINE + timedelta(days=1), "queued", ""),
        (NINE + timedelta(days=2), "queued", ""),
    ]


def test_a_schedule_is_begun_put_off_and_paused_from_the_page(
    client_of: ClientOf,
    alice: User,
    bob: User,
    mallory: User,
    acme: Organisation,
    make_order: MakeOrder,
) -> None:
    order = make_order()
    address = the_timer(alice, acme, "schedule").address
    for other in (bob, mallory):
        assert client_of(other).post(address, {"act": "now"}).status_code == 404
        with pytest.raises(NotFound):
            put_off_order(actor=other, order=order, by=timedelta(hours=1))
    client = client_of(alice)
    client.post(address, {"act": "now"})
    assert order.runs.get().trigger == "manual"
    client.post(address, {"act": "later"})
    assert order.runs.filter(skip="person").exists()
    client.post(address, {"act": "cancel"})
    order.refresh_from_db()
    assert order.is_paused
    with pytest.raises(Conflict):
        put_off_order(actor=alice, order=order, by=timedelta(hours=1))
    with pytest.raises(Invalid):
        put_off_order(actor=alice, order=order, by=timedelta(days=32))
    assert client.post(address, {"act": "dance"}).status_code == 302


# --- the tool -------------------------------------------------------------------------------------


def test_an_agent_sleeps_until_a_time_within_a_day(tmp_path: Path) -> None:
    context = ToolContext(call_id="c", workspace=tmp_path)
    moment = datetime.now(UTC) + timedelta(hours=2)

    [wake] = continue_later(context, {"until": moment.isoformat(), "reason": "look"}).events

    assert isinstance(wake, WakeRequested)
    assert abs(wake.delay_seconds - 7200) <= 2
    beyond = (datetime.now(UTC) + timedelta(seconds=MAX_DELAY + 60)).isoformat()
    for wrong in ("tomorrow", "2030-01-01T09:00:00", "2020-01-01T09:00:00Z", beyond):
        with pytest.raises(ToolError):
            continue_later(context, {"until": wrong, "reason": "look"})
    with pytest.raises(ToolError):
        continue_later(context, {"until": beyond, "seconds": 5, "reason": "look"})
