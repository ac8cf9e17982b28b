"""Run by `test_on_postgresql`: who ends a call and who changes a budget wait for each other in one order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import transaction
from django.db.models.signals import pre_delete
from django.utils import timezone

from accounts.actions.organisations import delete_organisation
from accounts.models import Organisation, User
from conversations import log
from conversations.actions.conversations import delete_conversation
from conversations.models import Conversation
from harness.events import (
    BudgetReached,
    ModelUsage,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
)
from harness.history import Entry
from spending import stops
from spending.actions.budgets import remove_budget, set_budget
from spending.models import Budget, BudgetPeriod, BudgetStop, Reservation, Usage
from tests.conversations.conftest import (  # noqa: F401 - fixtures
    Converse,
    converse,
    environment,
    make_agent,
    until,
)
from tests.patience import PATIENCE

from .locks import in_a_thread, somebody_waits_for_a_lock

pytestmark = pytest.mark.django_db(transaction=True)

SetLimit = Callable[[int], Budget]


@pytest.fixture
def tokens_of_acme(staff: User, acme: Organisation) -> SetLimit:
    """What Acme may use of tokens in all."""

    def set_to(limit: int) -> Budget:
        return set_budget(
            actor=staff,
            scope=Budget.Scope.ORGANISATION,
            organisation=acme,
            unit="tokens",
            period="total",
            limit=limit,
        )

    return set_to


def begin_call(conversation: Conversation) -> Entry:
    begun = SpanModelRequestStart(
        provider="scripted", model="m", prompt_tokens_at_most=60, output_tokens_at_most=40
    )
    start = Entry.of(begun)
    log.append(conversation.pk, [start])
    return start


def end_call(conversation: Conversation, start: Entry) -> None:
    took = ModelUsage(input_tokens=20, output_tokens=10)
    ended = SpanModelRequestEnd(model_request_start_id=start.uid, model_usage=took, end="end_turn")
    log.append(conversation.pk, [Entry.of(ended)])


def together(*works: Callable[[], object]) -> None:
    with ThreadPoolExecutor(len(works)) as threads:
        for done in [threads.submit(in_a_thread(work)) for work in works]:
            done.result(PATIENCE)


def test_a_call_that_ends_while_its_budget_is_lifted_keeps_its_reply(
    staff: User,
    converse: Converse,  # noqa: F811
    tokens_of_acme: SetLimit,
):
    budget = tokens_of_acme(1_000)
    conversation, _ = converse()
    start = begin_call(conversation)
    lifted = threading.Event()

    def lift() -> None:
        with transaction.atomic():
            remove_budget(actor=staff, budget=budget)
            lifted.set()
            until(somebody_waits_for_a_lock)

    def end() -> None:
        assert lifted.wait(PATIENCE)
        end_call(conversation, start)

    together(lift, end)
    assert Usage.objects.get().total_tokens == 30
    period = BudgetPeriod.objects.get()
    assert (period.spent, period.reserved) == (0, 0)
    assert not Reservation.objects.exists()


@pytest.mark.parametrize("way", ["end of a call", "higher limit", "lifted budget"])
def test_a_stopped_conversation_that_goes_on_does_not_deadlock_with_who_makes_room(
    staff: User,
    converse: Converse,  # noqa: F811
    tokens_of_acme: SetLimit,
    way: str,
):
    budget = tokens_of_acme(250)
    stopped, _ = converse()
    other, _ = converse()
    start = begin_call(other)
    rest = SessionStatusIdle(stop_reason=BudgetReached())
    log.append(stopped.pk, [Entry.of(SessionStatusRunning()), Entry.of(rest)])
    stops.note(stopped.pk, BudgetPeriod.objects.get(), needed=200)
    assert BudgetStop.objects.held().exists()
    forgotten, room_made = threading.Event(), threading.Event()

    def go_on() -> None:
        with transaction.atomic():
            log.append(stopped.pk, [Entry.of(SessionStatusRunning())])
            forgotten.set()
            until(lambda: room_made.is_set() or somebody_waits_for_a_lock())
            begin_call(stopped)

    def make_room() -> None:
        assert forgotten.wait(PATIENCE)
        match way:
            case "end of a call":
                end_call(other, start)
            case "higher limit":
                tokens_of_acme(500)
            case _:
                remove_budget(actor=staff, budget=budget)
        room_made.set()

    together(go_on, make_room)
    assert not BudgetStop.objects.exists()


@pytest.mark.parametrize("what", ["organisation", "source"])
def test_a_call_that_begins_while_what_it_shares_a_budget_with_is_deleted_does_not_deadlock(
    alice: User,
    staff: User,
    acme: Organisation,
    converse: Converse,  # noqa: F811
    what: str,
):
    """Deleting takes all conversations that it touches before a budget, as calls do."""
    set_budget(
        actor=staff, scope=Budget.Scope.DEPLOYMENT, unit="tokens", period="total", limit=1_000
    )
    first, _ = converse()
    second, _ = converse()
    begin_call(first)
    Conversation.objects.filter(pk=second.pk).update(origin=first)
    locked = threading.Event()

    def begin() -> None:
        with transaction.atomic():
            Conversation.objects.select_for_update(no_key=True).get(pk=second.pk)
            locked.set()
            until(somebody_waits_for_a_lock)
            begin_call(second)

    def delete() -> None:
        assert locked.wait(PATIENCE)
        if what == "organisation":
            delete_organisation(actor=staff, organisation=acme)
        else:
            delete_conversation(actor=alice, conversation=first)

    with ThreadPoolExecutor(2) as threads:
        beginning, deleting = (threads.submit(in_a_thread(work)) for work in (begin, delete))
        beginning.result(PATIENCE)
        deleting.result(PATIENCE)
    assert not Conversation.objects.filter(pk=first.pk).exists()
    lost = 2 if what == "organisation" else 1
    assert BudgetPeriod.objects.get().spent == lost * 30


def test_what_was_let_go_on_is_deleted_while_its_budget_is_raised_without_a_deadlock(
    alice: User,
    converse: Converse,  # noqa: F811
    tokens_of_acme: SetLimit,
):
    """Who changes a limit keeps usage from being written, and then waits for the budget."""
    tokens_of_acme(250)
    stopped, _ = converse()
    begin_call(converse()[0])
    period = BudgetPeriod.objects.get()
    BudgetStop.objects.create(
        conversation=stopped, period=period, needed=100, released_at=timezone.now()
    )
    deleting, raised = threading.Event(), threading.Event()

    def pause(**_given: object) -> None:
        deleting.set()
        until(lambda: raised.is_set() or somebody_waits_for_a_lock())

    def raise_it() -> None:
        assert deleting.wait(PATIENCE)
        tokens_of_acme(500)
        raised.set()

    pre_delete.connect(pause, sender=Conversation)
    try:
        together(lambda: delete_conversation(actor=alice, conversation=stopped), raise_it)
    finally:
        pre_delete.disconnect(pause, sender=Conversation)
    assert not Conversation.objects.filter(pk=stopped.pk).exists()
    period.refresh_from_db()
    assert period.limit == 500
