"""Due times become conversations: each once, by the rules, and what cannot begin says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from accounts.actions.service_accounts import create_service_account
from accounts.models import Membership, Organisation, User
from agents.models import Agent
from brief.compiling import compile_brief
from brief.models import Brief
from conversations.actions.messages import stop
from conversations.actions.redacting import redact_content
from conversations.actions.stored_files import store_file
from conversations.log import append
from conversations.models import Conversation, Event, Removal, Share
from conversations.ratelimits import count_message
from conversations.storedbytes import path_of
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from harness.events import (
    AgentToolUse,
    EndTurn,
    InputTaken,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
    StopDetails,
    UserDefineOutcome,
)
from harness.history import Entry
from providers.scripted import reply
from schedules import ending, running
from schedules.access import may_go_on
from schedules.actions.orders import (
    archive_order,
    change_order,
    create_order,
    delete_order,
    pause_order,
    resume_order,
)
from schedules.actions.runs import run_now
from schedules.drafts import Draft, draft_of
from schedules.models import OrderRun, StandingOrder
from schedules.preflight import preflight_of
from tests.conversations.conftest import rested

from .conftest import MONDAY, MakeOrder, said

NINE = datetime(2028, 5, 1, 9, 0, tzinfo=UTC)


def states(order: StandingOrder) -> list[tuple[str, str]]:
    return [(run.state, run.skip or run.error) for run in order.runs.order_by("pk")]


def tick(now: datetime) -> None:
    running.take_due(now)
    running.begin_queued(now)
    ending.settle_ends(now)


def end(run: OrderRun, *, failed: str = "", now: datetime = NINE) -> None:
    """As if the run's conversation had come to rest."""
    run.refresh_from_db()
    assert run.conversation is not None
    if failed:
        run.state, run.error, run.ended_at, run.is_settled = "failed", failed, now, False
        run.save()
    else:
        waiting = Event.objects.filter(
            conversation=run.conversation, type="user.message", processed_at=None
        )
        taken = InputTaken(event_ids=tuple(waiting.values_list("uid", flat=True)))
        rest = SessionStatusIdle(stop_reason=EndTurn())
        append(run.conversation.pk, [Entry.of(taken), Entry.of(rest)])
    ending.settle_ends(now)


def test_what_is_due_becomes_one_conversation_however_often_one_looks(
    make_order: MakeOrder, alice: User
) -> None:
    order = make_order()
    tick(NINE - timedelta(seconds=1))
    assert not order.runs.exists()

    for _look in range(3):
        tick(NINE)

    run = order.runs.get()
    assert (run.due_at, run.state, run.trigger) == (NINE, "started", "schedule")
    assert run.conversation is not None
    assert run.conversation.owner == alice
    first = Event.objects.filter(conversation=run.conversation, type="user.message").get()
    assert first.payload["content"][0]["text"] == "Look at the news."
    order.refresh_from_db()
    assert order.next_due_at == NINE + timedelta(days=1)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_ends_says_how_it_began_and_what_it_cost(
    make_order: MakeOrder, scripted: Callable[..., Agent]
) -> None:
    agent = scripted(
        [reply("## All is **quiet**.\n\n---\nNothing but `2**3` and 2 ** 3 ** 4 to do.")]
    )
    order = make_order(agent=agent)
    tick(NINE)
    run = order.runs.get()
    assert run.conversation is not None
    rested(run.conversation)
    ending.settle_ends(NINE)

    run.refresh_from_db()
    assert (run.state, run.words) == (
        "succeeded",
        "All is quiet.\nNothing but 2**3 and 2 ** 3 ** 4 to do.",
    )
    assert run.is_settled
    assert run.ended_at is not None


def test_a_run_that_a_hook_refused_has_failed(make_order: MakeOrder) -> None:
    order = make_order()
    tick(NINE)
    run = order.runs.get()
    assert run.conversation is not None
    refused = StopDetails(code="hook_refused", message="The hook “gate” refuses this turn.")
    waiting = Event.objects.filter(conversation=run.conversation, type="user.message")
    taken = InputTaken(event_ids=tuple(waiting.values_list("uid", flat=True)))
    rest = SessionStatusIdle(stop_reason=EndTurn(), stop_details=refused)
    append(run.conversation.pk, [Entry.of(taken), Entry.of(rest)])
    run.refresh_from_db()
    assert (run.state, run.error, run.words) == ("failed", "hook_refused", refused.message)


@pytest.mark.django_db(transaction=True)
def test_a_run_with_several_first_messages_ends_with_the_last_of_them(
    make_order: MakeOrder, scripted: Callable[..., Agent]
) -> None:
    messages = (said("Look."), said("And now report."))
    make_order(agent=scripted(["Looked.", "Nothing new."]), messages=messages)
    tick(NINE)
    run = OrderRun.objects.get()
    assert run.conversation is not None
    rested(run.conversation, times=2)
    ending.settle_ends(NINE)
    run.refresh_from_db()
    assert (run.state, run.words) == ("succeeded", "Nothing new.")


def judged(*met: bool) -> str:
    criteria = [{"number": n, "met": each, "reason": "seen"} for n, each in enumerate(met, 1)]
    return json.dumps({"criteria": criteria})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("met", [True, False])
@pytest.mark.parametrize("messages", [(), (said("Look."),)], ids=["alone", "behind a message"])
def test_a_run_towards_an_outcome_ends_well_if_it_is_reached(
    make_order: MakeOrder, scripted: Callable[..., Agent], alice: User, messages: Any, met: bool
) -> None:
    outcome = UserDefineOutcome(
        outcome_id="", description="A report.", rubric="- a title\n- sources", max_iterations=1
    )
    said_so = [] if met else ["Sources are missing."]
    script = [*["Looked." for _each in messages], "Here it is.", judged(True, met), *said_so]
    order = make_order(agent=scripted(script), messages=messages, outcome=outcome)
    tick(NINE)
    run = order.runs.get()
    assert run.conversation is not None
    rested(run.conversation, times=1 + len(messages))
    ending.settle_ends(NINE)
    run.refresh_from_db()
    order.refresh_from_db()
    wanted = (
        ("succeeded", "", "Here it is.")
        if met
        else ("failed", "outcome_not_met", "Not met: sources")
    )
    assert (run.state, run.error, run.words) == wanted
    assert order.failures == (not met)

    until = timezone.now() + timedelta(minutes=1)
    since = until - timedelta(days=1)
    contents = compile_brief(alice, order.organisation, since=since, until=until)
    assert ("sources" in contents.model_dump_json()) is not met
    told = Brief.objects.create(
        user=alice,
        organisation=order.organisation,
        due_at=until,
        since=since,
        until=until,
        stored_contents=contents.model_dump(mode="json"),
    )
    asked = Event.objects.get(conversation=run.conversation, type="user.define_outcome")
    redact_content(actor=alice, conversation=run.conversation, event_uid=asked.uid)
    run.refresh_from_db()
    told.refresh_from_db()
    assert "sources" not in run.words
    assert "sources" not in json.dumps(told.stored_contents)


def test_an_outcome_takes_the_place_of_messages_but_for_what_a_queue_or_a_mail_brings(
    make_order: MakeOrder, settings: LazySettings
) -> None:
    settings.AGENTSITE_INBOUND_MAIL = "agents@example.org"
    outcome = UserDefineOutcome(outcome_id="", description="A report.", rubric="- a title")
    order = make_order(messages=(), outcome=outcome)
    assert draft_of(order).outcome == outcome
    assert preflight_of(order).messages == 1
    with pytest.raises(Invalid):
        make_order(messages=())
    for brings in ({"works_queue": True}, {"mail_from": ("anna@example.org",)}):
        with pytest.raises(Invalid) as refusal:
            make_order(messages=(), outcome=outcome, **brings)
        assert refusal.value.field == "initial_events"
        make_order(outcome=outcome, **brings)


def test_the_same_due_time_is_not_taken_twice_though_the_order_forgot_it(
    make_order: MakeOrder,
) -> None:
    order = make_order()
    tick(NINE)
    StandingOrder.objects.filter(pk=order.pk).update(handled_at=MONDAY, next_start_at=NINE)

    tick(NINE + timedelta(seconds=30))

    assert order.runs.count() == 1


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("skip", [("skipped", "missed")]),
        ("once", [("started", ""), ("skipped", "missed")]),
        ("all", [("started", ""), ("skipped", "overlap"), ("skipped", "missed")]),
    ],
)
def test_after_a_week_down_the_rule_for_missed_times_holds(
    make_order: MakeOrder, missed: str, expected: list[tuple[str, str]]
) -> None:
    order = make_order(missed=missed, most_missed=2)
    tick(NINE + timedelta(days=6, hours=2))

    assert states(order) == expected
    left_out = order.runs.get(skip="missed")
    assert left_out.skipped == 7 - len(expected) + 1
    order.refresh_from_db()
    assert order.next_due_at == NINE + timedelta(days=7)


def test_a_clock_set_back_begins_nothing_again(make_order: MakeOrder) -> None:
    order = make_order()
    tick(NINE)
    tick(NINE - timedelta(hours=1))
    tick(NINE)

    assert order.runs.count() == 1


def test_an_order_that_cannot_be_looked_at_keeps_no_other_waiting(
    make_order: MakeOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, other = make_order(), make_order(name="Other")

    def fails_for_one(order: StandingOrder) -> bool:
        if order.pk == stuck.pk:
            raise OverflowError("no clock shows this")
        return may_go_on(order)

    monkeypatch.setattr(running, "may_go_on", fails_for_one)
    tick(NINE)
    assert (states(stuck), states(other)) == ([], [("started", "")])
    monkeypatch.undo()
    tick(NINE)
    assert states(stuck) == [("started", "")]


def test_an_end_that_cannot_be_settled_keeps_no_other_waiting(
    make_order: MakeOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make_order(), make_order(name="Other")
    tick(NINE)
    for order in (first, second):
        end(order.runs.get())
    OrderRun.objects.update(is_settled=False)
    count = ending._count

    def fails_for_one(order: StandingOrder, run: OrderRun) -> None:
        if order.pk == first.pk:
            raise OverflowError("it cannot be counted")
        count(order, run)

    monkeypatch.setattr(ending, "_count", fails_for_one)
    ending.settle_ends(NINE)
    assert [order.runs.get().is_settled for order in (first, second)] == [False, True]


# --- when an earlier run is not done --------------------------------------------------------------


def test_with_queue_the_next_run_begins_when_the_earlier_one_has_ended(
    make_order: MakeOrder,
) -> None:
    order = make_order(overlap="queue")
    tick(NINE)
    tick(NINE + timedelta(days=1))
    assert states(order) == [("started", ""), ("queued", "")]

    end(order.runs.earliest("pk"))
    running.begin_queued(NINE + timedelta(days=1))

    assert states(order) == [("succeeded", ""), ("started", "")]


def test_those_that_have_to_wait_keep_no_others_from_beginning(make_order: MakeOrder) -> None:
    waits = make_order(overlap="queue")
    tick(NINE)
    tick(NINE + timedelta(days=1))
    other = make_order(now=NINE + timedelta(days=1))
    now = NINE + timedelta(days=2)
    running.take_due(now)
    for _ in range(200):
        if not other.runs.filter(state="queued").exists():
            break
        running.begin_queued(now, most=1)
    assert states(waits) == [("started", ""), ("queued", ""), ("queued", "")]
    assert states(other) == [("started", "")]


def test_of_many_that_are_due_at_once_each_leaves_room_before_the_next(
    make_order: MakeOrder,
) -> None:
    orders = [make_order(name=f"Order {number}") for number in range(3)]
    running.take_due(NINE)
    begun: list[int] = []

    def rest(seconds: float) -> bool:
        assert 0 < seconds <= running.MOST_REST
        begun.append(OrderRun.objects.filter(state="started").count())
        return False

    running.begin_queued(NINE, rest=rest)
    assert begun == [1, 2, 3]
    assert [states(order) for order in orders] == 3 * [[("started", "")]]


def test_a_look_at_many_ends_with_its_process_and_no_other_goes_on_beside_it(
    make_order: MakeOrder,
) -> None:
    for number in range(3):
        make_order(name=f"Order {number}")
    running.take_due(NINE)
    beside: list[int] = []

    def rest(_seconds: float) -> bool:
        beside.append(running.begin_queued_alone(rest=rest))
        return True

    assert running.begin_queued_alone(rest=rest) == 3
    assert beside == [0]
    assert OrderRun.objects.filter(state="started").count() == 1
    assert running.begin_queued_alone(rest=lambda _seconds: False) == 2
    assert OrderRun.objects.filter(state="started").count() == 3


def test_with_replace_the_newer_of_two_runs_stays_whichever_began_first(
    make_order: MakeOrder,
) -> None:
    order = make_order(overlap="replace")
    older, newer = (running.queue_run(order, OrderRun.Trigger.WEBHOOK) for _ in range(2))
    running.begin(newer.pk, NINE)
    running.begin(older.pk, NINE)
    assert states(order) == [("skipped", "overlap"), ("started", "")]


def test_with_replace_the_earlier_run_is_stopped_first(make_order: MakeOrder) -> None:
    order = make_order(overlap="replace")
    tick(NINE)
    earlier = order.runs.get()
    append(earlier.conversation_id or 0, [Entry.of(SessionStatusRunning())])

    tick(NINE + timedelta(days=1))

    assert states(order) == [("started", ""), ("queued", "")]
    assert Event.objects.filter(conversation=earlier.conversation, type="user.interrupt").exists()
    append(
        earlier.conversation_id or 0,
        [Entry.of(SessionStatusIdle(stop_reason=EndTurn(), interrupted=True))],
    )
    tick(NINE + timedelta(days=1))
    assert states(order) == [("failed", "stopped"), ("started", "")]
    order.refresh_from_db()
    assert order.failures == 0


def test_of_many_that_wait_for_a_run_that_never_ends_the_rest_is_left_out(
    make_order: MakeOrder,
) -> None:
    order = make_order(overlap="queue")
    for day in range(running.MOST_QUEUED + 5):
        tick(NINE + timedelta(days=day))

    assert order.runs.filter(state="queued").count() == running.MOST_QUEUED
    assert order.runs.filter(skip="overlap").count() == 4


# --- what is gone ---------------------------------------------------------------------------------


def test_a_run_whose_agent_is_archived_fails_closed_and_pauses_the_order(
    make_order: MakeOrder, agent: Agent
) -> None:
    order = make_order()
    agent.archived_at = MONDAY
    agent.save()
    tick(NINE)

    assert states(order) == [("failed", "agent_archived_error")]
    order.refresh_from_db()
    assert (order.pause, order.pause_error) == ("error", "agent_archived_error")
    assert order.next_start_at is None
    assert not Conversation.objects.exists()


def test_an_agent_that_would_use_another_model_by_now_does_not_begin(
    make_order: MakeOrder, make_agent: Callable[..., Agent]
) -> None:
    order = make_order(agent=make_agent("Whatever there is", provider="auto"))
    assert (order.provider, order.model) == ("demo", "demo")
    StandingOrder.objects.filter(pk=order.pk).update(provider="anthropic", model="claude-x")
    tick(NINE)

    run = order.runs.get()
    assert (run.state, run.error) == ("failed", "session_creation_rejected_error")
    assert "anthropic/claude-x" in run.words
    assert "demo/demo" in run.words
    assert not Conversation.objects.exists()


def test_a_newer_version_of_the_agent_changes_nothing_for_a_pinned_order(
    make_order: MakeOrder, agent: Agent
) -> None:
    order = make_order()
    pinned = order.agent_version
    newer = agent.versions.create(number=2, stored_config=pinned.stored_config)
    agent.current = newer
    agent.save()
    tick(NINE)

    conversation = order.runs.get().conversation
    assert conversation is not None
    assert conversation.agent_version == pinned


def test_an_owner_who_left_has_nothing_done_for_her(
    make_order: MakeOrder, alice: User, acme: Organisation
) -> None:
    order = make_order()
    Membership.objects.filter(user=alice, organisation=acme).delete()
    tick(NINE)

    order.refresh_from_db()
    assert (order.pause, order.runs.count()) == ("rights", 0)


def test_after_runs_that_failed_one_after_the_other_it_pauses_itself(
    make_order: MakeOrder, alice: User
) -> None:
    order = make_order(failures_to_pause=2)
    for day in range(4):
        tick(NINE + timedelta(days=day))
        if order.runs.filter(state="started").exists():
            end(order.runs.get(state="started"), failed="bad_credentials")

    order.refresh_from_db()
    assert (order.pause, order.runs.count()) == ("failures", 2)

    resumed = resume_order(actor=alice, order=order, now=NINE + timedelta(days=9))
    assert (resumed.failures, resumed.next_due_at) == (0, NINE + timedelta(days=10))


def test_after_runs_that_said_the_same_it_pauses_itself(make_order: MakeOrder) -> None:
    order = make_order(idle_to_pause=2)
    for day in range(5):
        tick(NINE + timedelta(days=day))
        if order.runs.filter(state="started").exists():
            end(order.runs.get(state="started"))

    order.refresh_from_db()
    assert (order.pause, order.runs.count()) == ("idle", 3)


# --- runs that begin runs -------------------------------------------------------------------------


def test_the_end_of_a_run_begins_those_that_wait_for_it_once(
    make_order: MakeOrder, alice: User
) -> None:
    first = make_order()
    second = make_order(name="Second", cron="", after=first)
    third = make_order(name="Third", cron="", after=first, after_outcome="failure")
    tick(NINE)
    run = first.runs.get()
    end(run)
    OrderRun.objects.filter(pk=run.pk).update(is_settled=False)
    tick(NINE)

    assert [(r.trigger, r.key, r.state) for r in second.runs.all()] == [
        ("after", run.uid, "started")
    ]
    assert not third.runs.exists()


def test_orders_that_would_begin_each_other_for_ever_are_refused(
    make_order: MakeOrder, alice: User
) -> None:
    first = make_order()
    second = make_order(name="Second", cron="", after=first)
    with pytest.raises(Invalid) as refusal:
        change_order(actor=alice, order=first, draft=replace(draft_of(first), after=second))
    assert refusal.value.field == "after"


def test_a_ring_made_behind_our_back_stops(make_order: MakeOrder) -> None:
    order = make_order(after_outcome="any")
    StandingOrder.objects.filter(pk=order.pk).update(after=order)
    tick(NINE)
    for _again in range(20):
        for run in order.runs.filter(state="started"):
            end(run)
        tick(NINE)

    assert order.runs.count() == 5


# --- people ---------------------------------------------------------------------------------------


def test_a_paused_order_begins_nothing_but_by_hand(make_order: MakeOrder, alice: User) -> None:
    order = pause_order(actor=alice, order=make_order(), words="Holidays", now=MONDAY)
    tick(NINE)
    assert not order.runs.exists()

    run = run_now(actor=alice, order=order)

    assert (run.state, run.trigger, run.due_at) == ("started", "manual", None)


def test_what_was_due_in_a_pause_is_not_made_up(make_order: MakeOrder, alice: User) -> None:
    order = pause_order(actor=alice, order=make_order(missed="all", most_missed=9), now=MONDAY)
    resume_order(actor=alice, order=order, now=NINE + timedelta(days=3, hours=1))
    tick(NINE + timedelta(days=3, hours=2))

    assert not order.runs.exists()


@pytest.mark.parametrize("problem", [OperationalError, InterfaceError])
def test_what_the_database_refuses_begins_at_a_later_look(
    make_order: MakeOrder, monkeypatch: pytest.MonkeyPatch, problem: type[Exception]
) -> None:
    def locked(**_given: object) -> None:
        raise problem("database is locked")

    order = make_order()
    monkeypatch.setattr(running, "begin_session", locked)
    tick(NINE)
    assert states(order) == [("queued", "")]
    monkeypatch.undo()
    tick(NINE)
    order.refresh_from_db()
    assert (states(order), order.failures) == ([("started", "")], 0)


def test_approvers_may_decide_in_the_conversation(
    make_order: MakeOrder, alice: User, bob: User
) -> None:
    order = make_order(approvers=(bob.uid,))
    tick(NINE)

    share = Share.objects.get()
    assert (share.conversation, share.user, share.role) == (
        order.runs.get().conversation,
        bob,
        "decider",
    )


def test_a_run_that_asks_rests_until_somebody_answers(make_order: MakeOrder) -> None:
    order = make_order()
    tick(NINE)
    run = order.runs.get()
    call = Entry.of(AgentToolUse(name="bash", input={}, evaluated_permission="ask"))
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(call.uid,)))
    append(run.conversation_id or 0, [call, Entry.of(rest)])
    ending.settle_ends(NINE)

    run.refresh_from_db()
    assert (run.state, run.waits_for_person) == ("started", True)


def test_mallory_finds_nobodys_schedules(
    make_order: MakeOrder, mallory: User, acme: Organisation, draft: Draft
) -> None:
    order = make_order()
    assert not StandingOrder.objects.visible_to(mallory).exists()
    for act in (pause_order, resume_order, archive_order, delete_order, run_now):
        with pytest.raises(NotFound):
            act(actor=mallory, order=order)
    with pytest.raises(NotFound):
        change_order(actor=mallory, order=order, draft=draft)
    with pytest.raises(NotFound):
        create_order(actor=mallory, organisation=acme, draft=draft)


def test_a_member_sees_nothing_of_anothers_schedules(make_order: MakeOrder, bob: User) -> None:
    order = make_order()
    with pytest.raises(NotFound):
        run_now(actor=bob, order=order)


def test_an_archived_order_is_over_and_a_deleted_one_leaves_its_conversations(
    make_order: MakeOrder, alice: User
) -> None:
    order = make_order()
    tick(NINE)
    with pytest.raises(Conflict):
        delete_order(actor=alice, order=order)
    end(order.runs.get())
    archive_order(actor=alice, order=order)
    tick(NINE + timedelta(days=1))
    assert order.runs.count() == 1
    with pytest.raises(Conflict):
        run_now(actor=alice, order=order)

    delete_order(actor=alice, order=order)

    assert Conversation.objects.count() == 1


def test_there_are_no_more_schedules_than_the_setting_says_with_her_service_accounts(
    make_order: MakeOrder, alice: User, acme: Organisation, draft: Draft, settings
) -> None:
    settings.AGENTSITE_SCHEDULES = 1
    program = create_service_account(actor=alice, organisation=acme, name="Robot")
    create_order(actor=program, organisation=acme, draft=draft)
    with pytest.raises(LimitReached):
        make_order()


def test_stopping_a_run_is_no_failure_of_it(make_order: MakeOrder, alice: User) -> None:
    order = make_order()
    tick(NINE)
    run = order.runs.get()
    assert run.conversation is not None
    append(run.conversation.pk, [Entry.of(SessionStatusRunning())])
    stop(actor=alice, conversation=run.conversation)
    append(
        run.conversation.pk,
        [Entry.of(SessionStatusIdle(stop_reason=EndTurn(), interrupted=True))],
    )
    ending.settle_ends(NINE)

    order.refresh_from_db()
    assert states(order) == [("failed", "stopped")]
    assert order.failures == 0


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": ()}, "initial_events"),
        ({"messages": (said(" "),)}, "initial_events[0].content"),
        ({"messages": (said("{{ name }}"),)}, "initial_events"),
        ({"cron": "daily"}, "schedule.expression"),
        ({"timezone": "Mars/Olympus"}, "schedule.timezone"),
        ({"jitter": 541}, "jitter"),
        ({"missed": "sometimes"}, "missed"),
        ({"files": (("file_none", ""),)}, "resources[0].file_id"),
        ({"vaults": ("vlt_none",)}, "vault_ids[0]"),
        ({"approvers": ("usr_none",)}, "approvers[0]"),
        ({"version": 7}, "agent"),
    ],
)
def test_an_order_that_could_not_be_carried_out_is_refused_with_the_field(
    make_order: MakeOrder, fields: dict[str, object], field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        make_order(**fields)
    assert refusal.value.field == field


def folders(workspaces: Path) -> list[str]:
    return [each.name for each in workspaces.iterdir() if not each.name.startswith(".")]


def copies_of(settings: LazySettings, tmp_path: Path) -> Path:
    settings.AGENTSITE_FILES_DIR = tmp_path / "files"
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    (tmp_path / "workspaces").mkdir()
    return tmp_path / "workspaces"


def test_a_run_with_a_file_that_is_tried_again_and_again_leaves_one_copy(
    alice: User,
    acme: Organisation,
    make_order: MakeOrder,
    settings: LazySettings,
    tmp_path: Path,
) -> None:
    workspaces = copies_of(settings, tmp_path)
    stored = store_file(
        actor=alice, organisation=acme, filename="a.txt", mime_type="text/plain", chunks=[b"a"]
    )
    order = make_order(files=((stored.uid, "a.txt"),), cron="0 9 * * *")
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 1
    count_message(alice)
    running.take_due(NINE)
    for _look in range(3):
        running.begin_queued(NINE)
    assert states(order) == [("queued", "")]
    assert folders(workspaces) == []
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 2
    for _look in range(3):
        running.begin_queued(NINE)
    run = order.runs.get()
    assert run.conversation is not None
    assert folders(workspaces) == [run.conversation.uid]
    assert not Removal.objects.exists()


def test_a_run_that_may_not_begin_leaves_no_copy(
    alice: User,
    acme: Organisation,
    make_order: MakeOrder,
    settings: LazySettings,
    tmp_path: Path,
) -> None:
    workspaces = copies_of(settings, tmp_path)
    stored = store_file(
        actor=alice, organisation=acme, filename="a.txt", mime_type="text/plain", chunks=[b"a"]
    )
    departed = make_order(files=((stored.uid, "a.txt"),))
    StandingOrder.objects.update(pins={**departed.pins, "skills": {"gone": ["1", "digest"]}})
    lost = store_file(
        actor=alice, organisation=acme, filename="b.txt", mime_type="text/plain", chunks=[b"b"]
    )
    path_of(lost.uid).unlink()
    gone = make_order(files=((stored.uid, "a.txt"), (lost.uid, "b.txt")))
    tick(NINE)
    assert states(departed) == [("failed", running.REJECTED)]
    assert states(gone) == [("failed", running.REJECTED)]
    assert folders(workspaces) == []
    assert not Removal.objects.exists()
