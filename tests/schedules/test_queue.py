"""The work queue of a schedule: passes are ordinary runs of one item each, nothing that is added is lost, an
empty queue costs nothing, and one that feeds itself is stopped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import LazySettings
from django.urls import reverse

from accounts.models import Organisation, User
from agents.models import Agent
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import Text
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from harness.events import UserMessage
from harness.history import Entry
from providers.scripted import call, reply
from schedules import ending, queueing, running
from schedules.actions.items import add_follow_up, add_item, drop_item, retry_item
from schedules.actions.orders import pause_order
from schedules.actions.runs import run_now
from schedules.models import QueueItem, StandingOrder
from spending.models import Usage
from tests.approvals.asking import asks
from tests.cast import ClientOf
from tests.conversations.conftest import until

from .conftest import MONDAY, MakeOrder
from .test_running import end

NOW = MONDAY + timedelta(minutes=1)
NINE = datetime(2028, 5, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def heartbeat(make_order: MakeOrder) -> StandingOrder:
    """Every minute of the clock."""
    return make_order(cron="* * * * *", works_queue=True)


def tick(now: datetime) -> None:
    running.take_due(now)
    queueing.begin_waiting(now)
    running.begin_queued(now)
    ending.settle_ends(now)


def put(alice: User, order: StandingOrder, text: str, now: datetime = NOW) -> QueueItem:
    return add_item(actor=alice, order=order, text=text, now=now)


def states(order: StandingOrder) -> list[tuple[str, str]]:
    return list(order.items.order_by("pk").values_list("text", "state"))


def failed(order: StandingOrder, code: str, now: datetime) -> None:
    end(order.runs.get(state="started"), failed=code, now=now)


# --- passes ---------------------------------------------------------------------------------------


def test_an_empty_queue_costs_nothing_in_twelve_days(heartbeat: StandingOrder, alice: User) -> None:
    now = MONDAY
    while now < MONDAY + timedelta(days=12):
        tick(now)
        now += timedelta(minutes=291)

    assert not heartbeat.runs.exists()
    assert not Conversation.objects.exists()
    assert not Usage.objects.exists()
    heartbeat.refresh_from_db()
    assert heartbeat.handled_at > now - timedelta(hours=6), "its times were looked at"
    assert not heartbeat.is_paused


def test_a_pass_takes_one_item_and_what_is_added_meanwhile_is_next(
    heartbeat: StandingOrder, alice: User
) -> None:
    put(alice, heartbeat, "First")
    tick(NOW)
    run = heartbeat.runs.get()
    said = Event.objects.get(conversation=run.conversation, type="user.message")
    told = str(said.payload["content"])
    assert "Look at the news." in told
    assert "First" in told

    put(alice, heartbeat, "Second")
    assert states(heartbeat) == [("First", "taken"), ("Second", "waiting")]
    end(run, now=NOW)
    # The pass goes on at once, not with the next beat.
    running.begin_queued(NOW)

    assert states(heartbeat) == [("First", "done"), ("Second", "taken")]
    assert list(heartbeat.runs.order_by("pk").values_list("trigger", flat=True)) == [
        "schedule",
        "queue",
    ]


def test_a_queue_without_a_timetable_begins_when_something_comes_in(
    make_order: MakeOrder, alice: User
) -> None:
    order = make_order(cron="", works_queue=True)
    tick(NOW)
    put(alice, order, "First")
    put(alice, order, "Second")
    tick(NOW)
    assert states(order) == [("First", "taken"), ("Second", "waiting")]
    assert order.runs.count() == 1
    [item, _other] = order.items.order_by("pk")
    assert item.run == order.runs.get()


def test_what_people_ask_for_comes_before_what_agents_follow_up(
    heartbeat: StandingOrder, alice: User
) -> None:
    put(alice, heartbeat, "First")
    tick(NOW)
    run = heartbeat.runs.get()
    assert run.conversation is not None
    add_follow_up(conversation=run.conversation, text="Follow up", now=NOW)
    put(alice, heartbeat, "Asked")
    end(run, now=NOW)
    running.begin_queued(NOW)
    assert dict(states(heartbeat)) == {"First": "done", "Follow up": "waiting", "Asked": "taken"}


def test_the_same_key_adds_nothing_again(heartbeat: StandingOrder, alice: User) -> None:
    first = add_item(actor=alice, order=heartbeat, text="A", key="job-1", by_program=True)
    again = add_item(actor=alice, order=heartbeat, text="B", key="job-1", by_program=True)
    assert (first.pk, first.source) == (again.pk, "program")


def test_run_now_with_nothing_in_the_queue_says_so(heartbeat: StandingOrder, alice: User) -> None:
    run = run_now(actor=alice, order=heartbeat)
    assert (run.state, run.skip) == ("skipped", "empty")


# --- failures -------------------------------------------------------------------------------------


def test_what_passes_is_tried_after_one_two_and_four_minutes_and_then_given_up(
    make_order: MakeOrder, alice: User
) -> None:
    order = make_order(cron="", works_queue=True, failures_to_pause=0)
    put(alice, order, "Look")
    now, waited = NOW, []
    for _try in range(4):
        tick(now)
        failed(order, "overloaded", now)
        item = order.items.get()
        waited.append((item.state, round((item.not_before - now).total_seconds() / 60)))
        tick(now)  # too early: nothing begins
        assert not order.runs.filter(state="started").exists()
        now = max(item.not_before, now)

    assert waited[:3] == [("waiting", 1), ("waiting", 2), ("waiting", 4)]
    assert waited[3][0] == "failed"
    assert order.runs.count() == 4


def test_what_no_later_try_mends_is_tried_once_and_again_when_she_says_so(
    heartbeat: StandingOrder, alice: User, mallory: User
) -> None:
    put(alice, heartbeat, "Look")
    tick(NOW)
    failed(heartbeat, "invalid_request", NOW)
    item = heartbeat.items.get()
    assert (item.state, item.error) == ("failed", "invalid_request")
    with pytest.raises(NotFound):
        retry_item(actor=mallory, item=item)
    retry_item(actor=alice, item=item, now=NOW)
    tick(NOW + timedelta(minutes=1))
    assert states(heartbeat) == [("Look", "taken")]
    with pytest.raises(Conflict):
        retry_item(actor=alice, item=item)


def test_an_item_waits_on_when_no_run_can_begin(make_order: MakeOrder, alice: User) -> None:
    order = make_order(cron="", works_queue=True, failures_to_pause=0)
    StandingOrder.objects.filter(pk=order.pk).update(model="gone")
    put(alice, order, "Look")
    for _look in range(5):
        tick(NOW)
    assert states(order) == [("Look", "waiting")]
    assert order.runs.count() == 1, "it is not tried with every look at the clock"


def test_a_paused_queue_keeps_what_comes_in(make_order: MakeOrder, alice: User) -> None:
    order = make_order(cron="", works_queue=True)
    pause_order(actor=alice, order=order)
    put(alice, order, "Look")
    tick(NOW)
    assert states(order) == [("Look", "waiting")]
    assert not order.runs.exists()


# --- follow-ups -----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_loop_that_feeds_itself_is_stopped_and_told(
    make_order: MakeOrder, scripted: Callable[..., Agent], alice: User
) -> None:
    """The agent answers every item with another one."""
    steps = [reply(call("queue_follow_up", text="Once more")), "Done."]
    order = make_order(agent=scripted(steps * 5), cron="", works_queue=True)
    add_item(actor=alice, order=order, text="Begin")

    until(lambda: order.items.filter(state="done").count() == 2)
    until(lambda: not order.runs.filter(is_settled=False).exists())

    assert states(order) == [("Begin", "done"), ("Once more", "done")]
    last = order.runs.order_by("-pk")[0].conversation
    results = Event.objects.filter(conversation=last, type="agent.tool_result")
    assert "follow-ups go no deeper" in str(results.get().payload)


def test_follow_ups_go_to_the_depth_that_is_set_and_are_few_in_a_run(
    heartbeat: StandingOrder, alice: User, settings: LazySettings
) -> None:
    settings.AGENTSITE_QUEUE_DEPTH = 2
    put(alice, heartbeat, "Begin")
    for depth in range(3):
        tick(NOW + timedelta(minutes=depth))
        run = heartbeat.runs.get(state="started")
        assert run.conversation is not None
        follow = lambda text, run=run: add_follow_up(  # noqa: E731
            conversation=run.conversation, text=text
        )
        if depth == 2:
            with pytest.raises(LimitReached):
                follow("Too deep")
            break
        for number in range(queueing.MOST_FOLLOW_UPS if depth == 0 else 1):
            follow(f"{depth}.{number}")
        if depth == 0:
            with pytest.raises(LimitReached):
                follow("One too many")
            heartbeat.items.filter(text__in=["0.1", "0.2"]).delete()
        end(run, now=NOW)


def test_strangers_words_stay_strangers_words_in_a_follow_up(
    heartbeat: StandingOrder, alice: User
) -> None:
    put(alice, heartbeat, "Begin")
    tick(NOW)
    run = heartbeat.runs.get()
    assert run.conversation is not None
    add_follow_up(conversation=run.conversation, text="Buy", untrusted_by="a page", now=NOW)
    end(run, now=NOW)
    running.begin_queued(NOW)
    second = heartbeat.runs.get(state="started").conversation
    message = Event.objects.filter(conversation=second, type="user.message").order_by("-seq")[0]
    assert message.payload["untrusted_by"] == "a page"


def test_whoever_wrote_where_a_follow_up_was_asked_for_does_not_decide_on_what_it_does(
    heartbeat: StandingOrder, alice: User, bob: User
) -> None:
    put(alice, heartbeat, "Begin")
    tick(NOW)
    run = heartbeat.runs.get()
    assert run.conversation is not None
    said = Entry.of(UserMessage(content=(Text(text="Follow up with this."),)))
    append(run.conversation.pk, [said], actor=bob)
    add_follow_up(conversation=run.conversation, text="Send it", now=NOW)
    end(run, now=NOW)
    running.begin_queued(NOW)
    second = heartbeat.runs.get(state="started").conversation
    assert second is not None
    assert second.others_wrote
    asked = asks(second, requester_may_not_decide=True)
    assert list(asked.also_requested_by.all()) == [bob]


def test_a_conversation_without_an_item_has_no_follow_ups(
    make_order: MakeOrder, alice: User
) -> None:
    run = run_now(actor=alice, order=make_order())
    assert run.conversation is not None
    with pytest.raises(NotFound):
        add_follow_up(conversation=run.conversation, text="More")


# --- who, and how much ----------------------------------------------------------------------------


def test_others_cannot_put_in_or_take_out(
    client_of: ClientOf, heartbeat: StandingOrder, alice: User, bob: User, mallory: User
) -> None:
    item = put(alice, heartbeat, "My secret")
    place = reverse("schedules:queue", kwargs={"uid": heartbeat.uid})
    for other in (bob, mallory):
        with pytest.raises(NotFound):
            put(other, heartbeat, "Mine")
        with pytest.raises(NotFound):
            drop_item(actor=other, item=item)
        assert client_of(other).post(place, {"text": "Mine"}).status_code == 404
    assert states(heartbeat) == [("My secret", "waiting")]


def test_what_cannot_be_put_in_says_why(
    heartbeat: StandingOrder, make_order: MakeOrder, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in ("", "  ", "x" * (queueing.TEXT_LIMIT + 1)):
        with pytest.raises(Invalid):
            put(alice, heartbeat, wrong)
    put(alice, heartbeat, "x" * queueing.TEXT_LIMIT)
    with pytest.raises(Conflict):
        put(alice, make_order(), "It works none.")


def test_the_page_fills_the_queue_and_empties_it(
    client_of: ClientOf, heartbeat: StandingOrder, alice: User, acme: Organisation
) -> None:
    client = client_of(alice)
    place = reverse("schedules:queue", kwargs={"uid": heartbeat.uid})
    assert "It is empty." in client.get(heartbeat.get_absolute_url()).content.decode()
    client.post(place, {"text": "Look at <b>"})
    assert "Look at &lt;b&gt;" in client.get(heartbeat.get_absolute_url()).content.decode()
    refused = client.post(place, {"text": "y" * 9_000})
    assert "y" * 9_000 in refused.content.decode(), "nothing typed is lost"
    item = heartbeat.items.get()
    change = reverse("schedules:queue-item", kwargs={"uid": heartbeat.uid, "item_uid": item.uid})
    client.post(change, {"act": "drop"})
    assert states(heartbeat) == [("Look at <b>", "dropped")]
    client.post(change, {"act": "retry"})
    assert states(heartbeat) == [("Look at <b>", "waiting")]
