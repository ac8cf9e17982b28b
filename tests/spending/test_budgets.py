"""Budgets under real runs: reserved before a call, settled after it, never passed, and going on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F, Sum
from django.utils import timezone

from accounts.models import Membership, Organisation, User
from conversations import claims, log
from conversations.actions.branching import edit_and_resend, rewind
from conversations.actions.conversations import delete_conversation
from conversations.actions.messages import post_message, stop
from conversations.journal import store
from conversations.models import Conversation, Event, PartialBlock, Run
from conversations.partials import Partial, save_partials
from conversations.runner import run_conversation
from conversations.wakes import wake
from harness.content import Text
from harness.errors import LimitReached, Overloaded
from harness.events import (
    AgentMessage,
    BudgetReached,
    InputTaken,
    ModelUsage,
    RetriesExhausted,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    StopDetails,
    UserMessage,
)
from harness.history import Entry
from harness.ids import new_event_id
from harness.messages import Usage as Tokens
from harness.ports import LiveBlock
from jobs.engine import engine
from providers.scripted import Fail, Hold, reply, say
from spending import periods
from spending import stops as budgetstops
from spending.actions.budgets import remove_budget, resume_stopped, set_budget
from spending.amounts import units_of
from spending.apart import hold_apart, settle_apart
from spending.models import Budget, BudgetPeriod, BudgetStop, ModelPrice, Reservation, Usage
from tests.conversations.conftest import Converse, rested, still, types, until
from tests.patience import PATIENCE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("one_day")]

SetBudget = Callable[..., Budget]


@pytest.fixture
def tokens_of_acme(staff: User, acme: Organisation) -> SetBudget:
    """Set what Acme may use of tokens in all."""

    def set_to(limit: int, **other) -> Budget:
        fields = {"scope": Budget.Scope.ORGANISATION, "organisation": acme, "period": "total"}
        return set_budget(actor=staff, unit="tokens", limit=limit, **{**fields, **other})

    return set_to


def current(budget: Budget) -> BudgetPeriod:
    return BudgetPeriod.objects.get(
        budget=budget, starts_on=periods.starts_on(budget.period, timezone.now())
    )


def need_of(conversation: Conversation) -> int:
    """What a first call of this conversation reserves, by its own start event."""
    start = conversation.events.filter(type="span.model_request_start").first().value
    assert isinstance(start, SpanModelRequestStart)
    return start.prompt_tokens_at_most + start.output_tokens_at_most


def begin_call(conversation: Conversation, prompt: int = 60, output: int = 40, **fields) -> Entry:
    """Store the start of a call as a run does."""
    start = Entry.of(
        SpanModelRequestStart(
            **{"provider": "scripted", "model": "m"} | fields,
            prompt_tokens_at_most=prompt,
            output_tokens_at_most=output,
        )
    )
    log.append(conversation.pk, [start])
    return start


def end_call(conversation: Conversation, start: Entry, end: str = "end_turn", **tokens) -> None:
    event = SpanModelRequestEnd(
        model_request_start_id=start.uid, model_usage=ModelUsage(**tokens), end=end
    )
    log.append(conversation.pk, [Entry.of(event)])


def words_of(text: str, start: Entry) -> AgentMessage:
    return AgentMessage(content=(Text(text=text),), model_request_id=start.uid)


@contextmanager
def watching() -> Iterator[list[tuple[int, int, int]]]:
    """Look at every budget in the database, again and again, from another thread; what broke a promise
    is in the list afterwards."""
    broken: list[tuple[int, int, int]] = []
    done = threading.Event()
    looks = 0

    def watch() -> None:
        nonlocal looks
        try:
            while not done.is_set():
                with transaction.atomic():
                    periods = BudgetPeriod.objects.filter(limit__lt=F("spent") + F("reserved"))
                    broken.extend(periods.values_list("limit", "spent", "reserved"))
                looks += 1
                done.wait(
                    0.003
                )  # looks without a pause would take the processor from what they look at
        finally:
            connection.close()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield broken
    finally:
        done.set()
        thread.join()
    assert looks > 10


def books_balance() -> bool:
    """What each period holds reserved is what its reservations add up to."""
    held = dict(Reservation.objects.values_list("period").annotate(all=Sum("amount")))
    return all(held.get(row.pk, 0) == row.reserved for row in BudgetPeriod.objects.all())


# --- under real runs ------------------------------------------------------------------------------


def test_twenty_parallel_runs_never_pass_their_budget_and_raising_it_resumes_them_all(
    alice: User, staff: User, converse: Converse, tokens_of_acme: SetBudget
):
    """Nothing is spent unseen: at every moment reserved + spent is at most the limit."""
    usage = Tokens(input_tokens=900, output_tokens=100)
    probe, _ = converse([reply("Hi.", usage=usage)])
    post_message(actor=alice, conversation=probe, text="How large is a call?")
    rested(probe)
    need = need_of(probe)
    # Room for one call, and for four more once it and each after it gave back what it did not use.
    budget = tokens_of_acme(1_000 + need + 4_000)

    begun = [converse(lambda _request: reply("Done.", usage=usage))[0] for _ in range(20)]
    with watching() as broken:
        for conversation in begun:
            post_message(actor=alice, conversation=conversation, text="Go.")
        for conversation in begun:
            rested(conversation)
        still()
        reasons = Conversation.objects.filter(pk__in=[each.pk for each in begun])
        finished = reasons.filter(stop_reason="end_turn").count()
        stopped = reasons.filter(stop_reason="budget_reached").count()
        assert (finished + stopped, stopped > 0) == (20, True)
        assert finished == 5, "each of them used 1,000, so four more leave room for a fifth"
        assert current(budget).spent == 1_000 + finished * 1_000
        assert current(budget).reserved == 0

        budget = tokens_of_acme(1_000 + 20 * need)
        until(lambda: reasons.filter(stop_reason="end_turn").count() == 20)
        for conversation in begun:
            rested(conversation)
    assert not broken
    still()
    assert current(budget).spent == 21_000 == sum(row.total_tokens for row in Usage.objects.all())
    assert books_balance()
    assert not Reservation.objects.exists()
    assert not BudgetStop.objects.exists()


def test_a_run_at_the_cap_rests_and_says_which_cap_and_who_can_raise_it(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    tokens_of_acme(100, period="month")
    conversation, scripted = converse(["Never asked for."])
    post_message(actor=alice, conversation=conversation, text="Hi.")
    rested(conversation)
    assert not scripted.requests, "the call was refused before it was made"
    assert conversation.stop_reason == "budget_reached"
    assert "span.model_request_start" not in types(conversation)
    details = conversation.events.get(type="session.status_idle").value.stop_details
    assert details.code == "budget_reached"
    assert "100 tokens a month" in details.message
    assert "Acme" in details.message
    assert "0 tokens are spent" in details.message
    assert "owners and administrators of Acme" in details.hint


@pytest.mark.parametrize(
    ("told", "left_out"),
    [(Tokens(), "both"), (Tokens(input_tokens=7), "output"), (Tokens(output_tokens=7), "prompt")],
)
def test_what_a_service_does_not_say_of_its_reply_is_counted_by_our_estimate(
    alice: User, converse: Converse, tokens_of_acme: SetBudget, told: Tokens, left_out: str
):
    """Else whoever's service says nothing asks it for ever, whatever the budget."""
    budget = tokens_of_acme(1_000_000)
    conversation, _ = converse([reply("x" * 400, usage=told)])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)

    row = conversation.usage.get()
    start = conversation.events.get(type="span.model_request_start").value
    assert isinstance(start, SpanModelRequestStart)
    likely = start.prompt_tokens_at_most // 2
    assert row.input_tokens == (7 if left_out == "output" else likely)
    assert row.output_tokens == (7 if left_out == "prompt" else 100)
    assert current(budget).spent == row.total_tokens
    end = conversation.events.get(type="span.model_request_end").value
    assert isinstance(end, SpanModelRequestEnd)
    assert end.estimated


def test_a_call_of_no_conversation_whose_price_is_removed_meanwhile_is_not_free(
    staff: User, acme: Organisation
):
    price = ModelPrice.objects.create(
        provider="scripted", model="m", input=10, output=10, cache_write=10, cache_read=10
    )
    budget = set_budget(
        actor=staff,
        scope=Budget.Scope.ORGANISATION,
        organisation=acme,
        unit="money",
        period="total",
        limit=10**12,
    )
    begun = SpanModelRequestStart(
        purpose="embedding", provider="scripted", model="m", prompt_tokens_at_most=1_000
    )
    call = hold_apart(begun, organisation=acme.pk, user=None)
    assert call is not None
    held = current(budget).spent
    assert held > 0
    price.delete()
    settle_apart(call, Tokens(input_tokens=900))
    assert current(budget).spent == held


def test_a_budget_made_while_a_call_of_no_conversation_waits_its_turn_counts_it(
    staff: User, acme: Organisation, tokens_of_acme: SetBudget
):
    held = tokens_of_acme(1_000)
    begun = SpanModelRequestStart(
        purpose="embedding", provider="scripted", model="m", prompt_tokens_at_most=100
    )
    made: list[Budget] = []

    def hold() -> None:
        hold_apart(begun, organisation=acme.pk, user=None)

    def make() -> None:
        budget = set_budget(
            actor=staff, scope=Budget.Scope.DEPLOYMENT, unit="tokens", period="total", limit=1_000
        )
        made.append(budget)

    def change() -> None:
        tokens_of_acme(2_000)

    with transaction.atomic():
        # Somebody else's call is being settled.
        list(BudgetPeriod.objects.select_for_update().filter(budget=held))
        threads = []
        for work in (hold, make, change):
            threads.append(Beside(work))
            time.sleep(0.5)
    for thread in threads:
        thread.join(PATIENCE)
        assert thread.fault is None
    assert Usage.objects.get().input_tokens == 100
    assert {current(budget).spent for budget in (held, *made)} == {100}


class Beside(threading.Thread):
    """At work at once; `fault` is what went wrong."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self.fault: BaseException | None = None
        self._work = work
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as fault:
            self.fault = fault
        finally:
            connection.close()


def test_the_first_call_of_a_month_that_is_refused_goes_on_when_the_budget_is_raised(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    """What it began is rolled back with it, and must not take the memory of its stop along."""
    budget = tokens_of_acme(1, period="month")
    BudgetPeriod.objects.filter(budget=budget).update(starts_on="2020-01-01")
    conversation, _ = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Hi.")
    rested(conversation)

    tokens_of_acme(1_000_000, period="month")

    rested(conversation, 2)
    assert conversation.stop_reason == "end_turn"


def test_a_call_that_waits_for_others_goes_on_when_they_leave_room(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    """What is only reserved is not spent: nobody has to raise anything."""
    hold = Hold()
    first, _ = converse([reply(say("One", hold, "."))])
    second, _ = converse(["Two."])
    post_message(actor=alice, conversation=first, text="Go.")
    until(hold.reached.is_set)
    tokens_of_acme(need_of(first) + 20)
    hold.release.set()
    rested(first)

    hold = Hold()
    third, _ = converse([reply(say("Three", hold, "."))])
    tokens_of_acme(need_of(first) + 100)
    post_message(actor=alice, conversation=third, text="Go.")
    until(hold.reached.is_set)
    post_message(actor=alice, conversation=second, text="Go.")
    rested(second)
    assert second.stop_reason == "budget_reached"
    hold.release.set()
    rested(second, 2)
    assert second.stop_reason == "end_turn"
    retry = second.events.get(type="x.retry_requested")
    assert retry.actor is None


@pytest.mark.parametrize("gone", ["elsewhere", "refused by another budget", "deleted", "left"])
def test_room_that_one_conversation_no_longer_wants_is_the_next_ones(
    alice: User, mallory: User, converse: Converse, tokens_of_acme: SetBudget, gone: str
):
    usage = Tokens(input_tokens=1)
    probe, _ = converse([reply("Hi.", usage=usage)])
    post_message(actor=alice, conversation=probe, text="How large is a call?")
    rested(probe)
    first, _ = converse(["One."])
    second, _ = converse(["Two."])
    other, _ = converse()
    # Room for one of them, but for the call under way.
    tokens_of_acme(1 + need_of(probe) + 20)
    under_way = begin_call(other)
    for conversation in (first, second):
        post_message(actor=alice, conversation=conversation, text="How large is a call?")
        rested(conversation)
    assert BudgetStop.objects.held().count() == 2
    if gone == "elsewhere":
        details = StopDetails(code="token_budget", message="This message has used its tokens.")
        idle = SessionStatusIdle(stop_reason=BudgetReached(), stop_details=details)
        log.append(first.pk, [Entry.of(idle)])
        end_call(other, under_way)
    elif gone == "refused by another budget":
        own: dict[str, Any] = {"scope": Budget.Scope.CONVERSATION, "conversation": first}
        set_budget(actor=alice, unit="tokens", period="total", limit=1, **own)
        end_call(other, under_way)
    elif gone == "left":
        Conversation.objects.filter(pk=first.pk).update(owner=mallory)
        end_call(other, under_way)
        assert rested(first, 2).stop_reason == "retries_exhausted"
        still()
        resume_stopped()
    else:
        with transaction.atomic():
            end_call(other, under_way)
            first.delete()
    rested(second, 2)
    assert second.stop_reason == "end_turn"


def test_room_that_was_promised_to_one_is_not_given_to_another_as_well(
    converse: Converse, tokens_of_acme: SetBudget
):
    tokens_of_acme(100)
    waiting = [converse()[0] for _ in range(2)]
    begin_call(waiting[0])
    for conversation in waiting:
        budgetstops.note(conversation.pk, BudgetPeriod.objects.get(), needed=60)
    still()
    BudgetPeriod.objects.update(reserved=0)
    first, second = BudgetStop.objects.held().order_by("pk")
    BudgetStop.objects.filter(pk=first.pk).update(released_at=timezone.now())
    budgetstops.pass_on_room()
    assert list(BudgetStop.objects.held()) == [second]
    BudgetStop.objects.filter(pk=first.pk).delete()
    budgetstops.pass_on_room()
    assert not BudgetStop.objects.held().exists()


def test_what_went_back_behind_its_stop_is_not_had_go_on_where_it_stands_now(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    conversation, scripted = converse(["One."])
    post_message(actor=alice, conversation=conversation, text="One?")
    rested(conversation)
    tokens_of_acme(1)
    refused = post_message(actor=alice, conversation=conversation, text="Two?")
    assert rested(conversation, 2).stop_reason == "budget_reached"
    rewind(actor=alice, conversation=conversation, event_uid=refused.uid, files=False)
    tokens_of_acme(1_000_000)
    still()
    conversation.refresh_from_db()
    assert (conversation.stop_reason, conversation.owes_run) == ("end_turn", False)
    assert "x.retry_requested" not in types(conversation)
    assert len(scripted.requests) == 1
    assert not BudgetStop.objects.exists()


def test_lifting_a_budget_resumes_what_it_stopped_in_the_name_of_who_lifted_it(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    budget = tokens_of_acme(1)
    conversation, _ = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Hi.")
    rested(conversation)
    remove_budget(actor=alice, budget=budget)
    rested(conversation, 2)
    assert conversation.stop_reason == "end_turn"
    assert conversation.events.get(type="x.retry_requested").actor == alice


def test_a_conversation_that_went_on_by_itself_is_not_resumed_again(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    budget = tokens_of_acme(1)
    conversation, _ = converse(lambda _request: "Done.")
    post_message(actor=alice, conversation=conversation, text="Hi.")
    rested(conversation)
    Budget.objects.filter(pk=budget.pk).update(removed_at=timezone.now())  # nobody is told
    post_message(actor=alice, conversation=conversation, text="Again.")
    rested(conversation, 2)
    still()
    assert not BudgetStop.objects.exists()
    resume_stopped()
    still()
    assert "x.retry_requested" not in types(conversation)


def test_a_raise_that_comes_between_refusal_and_rest_is_not_lost(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    budget = tokens_of_acme(10)
    conversation, _ = converse()
    with pytest.raises(LimitReached) as refused:
        begin_call(conversation)
    tokens_of_acme(1_000)
    budgetstops.note(conversation.pk, current(budget), needed=100)
    assert refused.value.code == "budget_reached"
    assert BudgetStop.objects.get(conversation=conversation).released_at is not None


def test_an_agents_own_limit_is_not_lifted_by_a_budget(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    """The harness rests with the same reason for the budget of one message."""
    budget = tokens_of_acme(1)
    conversation, _ = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Hi.")
    rested(conversation)
    details = StopDetails(code="token_budget", message="This message has used its tokens.")
    log.append(
        conversation.pk,
        [Entry.of(SessionStatusIdle(stop_reason=BudgetReached(), stop_details=details))],
    )
    tokens_of_acme(1_000_000)
    until(lambda: not BudgetStop.objects.exists())
    still()
    assert budget.limit == 1
    assert "x.retry_requested" not in types(conversation)


@pytest.mark.parametrize("ending", ["interrupted", "error"])
def test_a_call_that_is_cut_short_gives_back_what_it_did_not_use(
    alice: User, converse: Converse, tokens_of_acme: SetBudget, ending: str
):
    budget = tokens_of_acme(1_000_000)
    hold = Hold()
    part = hold if ending == "interrupted" else Fail(Overloaded("Too busy."))
    conversation, _ = converse([reply(say("Half of it, ", part, "never."))])
    post_message(actor=alice, conversation=conversation, text="Hi.")
    if ending == "interrupted":
        until(hold.reached.is_set)
        until(lambda: current(budget).reserved > 0)
        stop(actor=alice, conversation=conversation)
    rested(conversation)
    usage = Usage.objects.get()
    assert (current(budget).spent, current(budget).reserved) == (usage.total_tokens, 0)
    assert not Reservation.objects.exists()


def test_a_call_that_was_lost_with_its_process_is_settled_by_the_next_run(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    budget = tokens_of_acme(1_000_000)
    conversation, _ = converse(["Done."])
    message = Entry.of(UserMessage(content=(Text(text="Hi."),)))
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    log.append(conversation.pk, [message, Entry.of(SessionStatusRunning()), taken])
    begin_call(conversation)
    assert current(budget).reserved == 100
    wake(conversation.pk)
    rested(conversation)
    end = conversation.events.filter(type="span.model_request_end").first().value
    assert end.end == "lost"
    assert current(budget).reserved == 0
    assert books_balance()


# --- reserving and settling -----------------------------------------------------------------------


def test_a_call_reserves_its_worst_case_in_every_budget_and_settles_what_it_used(
    alice: User, acme: Organisation, converse: Converse, staff: User
):
    conversation, _ = converse()
    scopes: list[dict[str, Any]] = [
        {"scope": Budget.Scope.DEPLOYMENT},
        {"scope": Budget.Scope.ORGANISATION, "organisation": acme},
        {"scope": Budget.Scope.USER, "organisation": acme, "user": alice},
        {"scope": Budget.Scope.CONVERSATION, "conversation": conversation},
    ]
    made = [
        set_budget(actor=staff, unit="tokens", period=period, limit=1_000, **scope)
        for scope in scopes
        for period in Budget.Period.values
    ]
    start = begin_call(conversation)
    assert {current(each).reserved for each in made} == {100}
    end_call(conversation, start, input_tokens=10, output_tokens=5, cache_read_input_tokens=20)
    assert {(current(each).spent, current(each).reserved) for each in made} == {(35, 0)}


@pytest.mark.parametrize(("limit", "fits"), [(100, True), (99, False)])
def test_a_call_may_take_exactly_what_is_left_and_not_one_token_more(
    converse: Converse, tokens_of_acme: SetBudget, limit: int, fits: bool
):
    conversation, _ = converse()
    budget = tokens_of_acme(limit)
    if fits:
        begin_call(conversation)
    else:
        with pytest.raises(LimitReached):
            begin_call(conversation)
    assert current(budget).reserved == (100 if fits else 0)
    assert types(conversation) == (["span.model_request_start"] if fits else [])


def test_a_refusal_by_one_budget_reserves_nothing_in_the_others(
    alice: User, staff: User, converse: Converse, tokens_of_acme: SetBudget
):
    conversation, _ = converse()
    wide = tokens_of_acme(1_000)
    narrow = set_budget(
        actor=alice,
        scope=Budget.Scope.CONVERSATION,
        conversation=conversation,
        unit="tokens",
        period="total",
        limit=99,
    )
    with pytest.raises(LimitReached, match="This conversation"):
        begin_call(conversation)
    assert (current(wide).reserved, current(narrow).reserved) == (0, 0)
    assert not Reservation.objects.exists()


def test_what_a_service_counts_beyond_the_estimate_is_recorded_as_it_is(
    converse: Converse, tokens_of_acme: SetBudget
):
    conversation, _ = converse()
    budget = tokens_of_acme(100)
    start = begin_call(conversation)
    end_call(conversation, start, input_tokens=150)
    assert (current(budget).spent, current(budget).reserved) == (150, 0)
    with pytest.raises(LimitReached):
        begin_call(conversation, 1, 0)


def test_a_call_of_a_model_with_a_long_name_is_counted(
    converse: Converse, tokens_of_acme: SetBudget
):
    """A form takes 160 characters, a program any number; a database may keep no more than a column holds."""
    conversation, _ = converse()
    budget = tokens_of_acme(1_000)
    end_call(conversation, begin_call(conversation, model="m" * 160), input_tokens=7)
    assert Usage.objects.get().model == "m" * 100
    assert (current(budget).spent, current(budget).reserved) == (7, 0)


def test_an_end_that_is_reported_twice_is_counted_once(
    converse: Converse, tokens_of_acme: SetBudget
):
    conversation, _ = converse()
    budget = tokens_of_acme(1_000)
    start = begin_call(conversation)
    end_call(conversation, start, input_tokens=10)
    end_call(conversation, start, end="lost", input_tokens=10)
    assert current(budget).spent == 10


def test_a_child_draws_on_what_its_parent_has_left_and_so_does_its_child(
    alice: User, acme: Organisation, converse: Converse
):
    parent, _ = converse()
    child, _ = converse()
    grandchild, _ = converse()
    Conversation.objects.filter(pk=child.pk).update(parent=parent)
    Conversation.objects.filter(pk=grandchild.pk).update(parent=child)
    child.refresh_from_db()
    budget = set_budget(
        actor=alice,
        scope=Budget.Scope.CONVERSATION,
        conversation=parent,
        unit="tokens",
        period="total",
        limit=250,
    )
    begin_call(parent)
    begin_call(grandchild)
    with pytest.raises(LimitReached, match="that started this one"):
        begin_call(child)
    assert current(budget).reserved == 200
    begin_call(converse()[0])  # one that has nothing to do with it


def test_the_budget_of_another_organisation_is_not_touched(
    converse: Converse, mallory: User, elsewhere: Organisation
):
    conversation, _ = converse()
    theirs = set_budget(
        actor=mallory,
        scope=Budget.Scope.ORGANISATION,
        organisation=elsewhere,
        unit="tokens",
        period="total",
        limit=0,
    )
    begin_call(conversation)
    assert current(theirs).reserved == 0


def test_a_new_day_begins_with_the_whole_allowance_and_late_calls_count_in_their_own(
    converse: Converse, tokens_of_acme: SetBudget
):
    conversation, _ = converse()
    budget = tokens_of_acme(150, period="day")
    begun = begin_call(conversation)
    # What was today is yesterday.
    yesterday = timezone.localdate() - timedelta(days=1)
    BudgetPeriod.objects.filter(budget=budget).update(starts_on=yesterday)
    other = begin_call(conversation)
    end_call(conversation, begun, input_tokens=7)
    days = {row.starts_on: row for row in BudgetPeriod.objects.filter(budget=budget)}
    assert (days[yesterday].spent, days[yesterday].reserved) == (7, 0)
    assert (days[timezone.localdate()].spent, days[timezone.localdate()].reserved) == (0, 100)
    end_call(conversation, other, input_tokens=9)
    assert current(budget).spent == 9


def test_the_days_of_a_budget_are_those_of_the_sites_time_zone(settings):
    settings.TIME_ZONE = "Pacific/Auckland"
    with timezone.override("Pacific/Auckland"):
        late = datetime.fromisoformat("2026-03-31T12:30:00+00:00")
        assert str(periods.starts_on("day", late)) == "2026-04-01"
        assert str(periods.starts_on("month", late)) == "2026-04-01"
        assert str(periods.ends_on("month", late)) == "2026-05-01"
    assert periods.ends_on("total", late) is None


def test_a_budget_made_in_mid_period_counts_what_was_spent_before(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    conversation, _ = converse()
    end_call(conversation, begin_call(conversation), input_tokens=30)
    old = begin_call(conversation)
    end_call(conversation, old, input_tokens=500)
    Usage.objects.filter(model_request_id=old.uid).update(
        created_at=timezone.now() - timedelta(days=40)
    )
    under_way = begin_call(conversation)
    assert current(tokens_of_acme(1_000, period="day")).spent == 30
    assert current(tokens_of_acme(1_000, period="month")).spent == 30
    total = tokens_of_acme(1_000)
    assert current(total).spent == 530
    end_call(conversation, under_way, input_tokens=4)
    assert current(total).spent == 534


def test_a_reservation_of_no_conversation_is_given_back(
    converse: Converse, tokens_of_acme: SetBudget
):
    conversation, _ = converse()
    budget = tokens_of_acme(1_000)
    begin_call(conversation)
    Reservation.objects.update(conversation=None)
    resume_stopped()
    assert current(budget).reserved == 0
    assert books_balance()


def test_deleting_a_conversation_whose_call_was_lost_hides_no_spending(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    """Its process is gone, and no other one was at it yet."""
    conversation, _ = converse()
    budget = tokens_of_acme(1_000)
    end_call(conversation, begin_call(conversation), input_tokens=3)
    start = begin_call(conversation)
    log.append(conversation.pk, [Entry.of(words_of("w" * 40, start))])
    PartialBlock.objects.create(
        uid=new_event_id(),
        conversation=conversation,
        kind="text",
        model_request_id=start.uid,
        text="p" * 20,
    )
    delete_conversation(actor=alice, conversation=conversation)
    lost = Usage.objects.get(model_request_id=start.uid)
    assert (lost.conversation, lost.user, lost.input_tokens, lost.output_tokens) == (
        None,
        alice,
        30,
        15,
    )
    assert (current(budget).spent, current(budget).reserved) == (48, 0)
    assert Usage.objects.count() == 2
    assert books_balance()


@pytest.mark.parametrize("whose", ["organisation", "owner"])
def test_organisations_and_people_can_go_while_a_call_is_lost(
    staff: User, converse: Converse, whose: str
):
    conversation, _ = converse()
    begin_call(conversation, server_keys=True)
    made = [
        set_budget(actor=staff, scope=scope, unit="tokens", period=period, limit=1_000)
        for scope in (Budget.Scope.DEPLOYMENT, Budget.Scope.PERSON)
        for period in Budget.Period.values
    ]
    getattr(conversation, whose).delete()
    assert not Conversation.objects.exists()
    for budget in made:
        if budget.scope == Budget.Scope.DEPLOYMENT and budget.period != Budget.Period.RUN:
            assert current(budget).spent == 30


def test_a_call_that_broke_with_its_run_is_counted_where_the_message_is_said_anew(
    alice: User, converse: Converse, tokens_of_acme: SetBudget
):
    budget = tokens_of_acme(1_000_000)
    conversation, _ = converse(["Done."])
    message = Entry.of(UserMessage(content=(Text(text="Hi."),)))
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    log.append(conversation.pk, [message], actor=alice)
    log.append(conversation.pk, [taken, Entry.of(SessionStatusRunning())])
    start = begin_call(conversation)
    failed = SessionStatusIdle(stop_reason=RetriesExhausted())
    log.append(conversation.pk, [Entry.of(failed)])
    Conversation.objects.update(owes_run=False)
    edit_and_resend(
        actor=alice, conversation=conversation, message_uid=message.uid, text="Ho.", files=False
    )
    rested(conversation)
    assert Usage.objects.get(model_request_id=start.uid).total_tokens == 30
    assert current(budget).reserved == 0
    assert current(budget).spent == sum(each.total_tokens for each in Usage.objects.all())
    assert books_balance()


def test_a_call_that_breaks_with_its_run_is_counted_as_the_run_rests(
    alice: User, converse: Converse, tokens_of_acme: SetBudget, monkeypatch
):
    def broken(row: Event) -> None:
        if row.type == "agent.message":
            raise ZeroDivisionError

    monkeypatch.setattr("conversations.log.index_event", broken)
    budget = tokens_of_acme(1_000_000)
    conversation, _ = converse(["Words that cannot be stored."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    assert conversation.stop_reason == "retries_exhausted"
    used = Usage.objects.get(conversation=conversation)
    assert used.input_tokens > 0
    assert (current(budget).spent, current(budget).reserved) == (used.total_tokens, 0)
    assert not Reservation.objects.exists()
    ended = conversation.events.get(type="span.model_request_end")
    assert (ended.value.end, ended.value.estimated) == ("lost", True)
    assert ended.seq < conversation.events.get(type="session.error").seq


def test_a_lost_call_of_a_person_who_has_left_is_counted_with_what_had_come(
    alice: User, acme: Organisation, converse: Converse, tokens_of_acme: SetBudget
):
    budget = tokens_of_acme(1_000_000)
    conversation, scripted = converse(["Never."])
    message = Entry.of(UserMessage(content=(Text(text="Go."),)))
    log.append(conversation.pk, [message], actor=alice)
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    log.append(conversation.pk, [taken, Entry.of(SessionStatusRunning())])
    start = begin_call(conversation)
    run = claims.claim(conversation.pk)
    assert run is not None
    block = LiveBlock(new_event_id(), "text", start.uid)
    save_partials([Partial(conversation.pk, run.pk, block, "word" * 7)])
    claims.release(run)
    Membership.objects.filter(organisation=acme, user=alice).delete()
    engine.submit(lambda: run_conversation(conversation.pk)).result(PATIENCE)
    rested(conversation)
    assert not scripted.requests
    assert Usage.objects.get(model_request_id=start.uid).total_tokens == 30 + 7
    assert (current(budget).spent, current(budget).reserved) == (37, 0)
    assert conversation.events.get(uid=block.uid).value.interrupted
    assert not PartialBlock.objects.exists()


def test_a_run_rests_also_where_what_it_left_cannot_be_told(
    alice: User, converse: Converse, monkeypatch
):
    """Here: because the fault is in the counting itself."""

    def broken(*_args: object, **_kwargs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("spending.projection.record_request_end", broken)
    conversation, _ = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    assert conversation.stop_reason == "retries_exhausted"
    assert not conversation.events.filter(type="span.model_request_end").exists()


def test_without_budgets_a_call_costs_one_look_at_each_end(
    converse: Converse, django_assert_max_num_queries
):
    conversation, _ = converse()
    start = Entry.of(SpanModelRequestStart(provider="scripted", model="m"))
    with django_assert_max_num_queries(100) as seen:
        log.append(conversation.pk, [start])
        end_call(conversation, start, input_tokens=1)
    assert len([q for q in seen.captured_queries if "budget" in q["sql"]]) == 2


def test_threads_that_race_at_the_turn_of_a_day_keep_every_promise(
    alice: User, staff: User, acme: Organisation, converse: Converse, settings
):
    """Calls, the first of a new day, and people who change limits and make budgets meanwhile."""
    conversations = [converse()[0] for _ in range(6)]
    subjects: list[dict[str, Any]] = [
        {"scope": Budget.Scope.DEPLOYMENT},
        {"scope": Budget.Scope.ORGANISATION, "organisation": acme},
        {"scope": Budget.Scope.USER, "organisation": acme, "user": alice},
    ]
    for subject in subjects:
        set_budget(actor=staff, unit="tokens", period="day", limit=350, **subject)
    yesterday = timezone.localdate() - timedelta(days=1)
    BudgetPeriod.objects.update(starts_on=yesterday)
    faults: list[BaseException] = []
    refused: list[LimitReached] = []
    start_together = threading.Barrier(len(conversations) + 1)

    def in_thread(work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                start_together.wait(PATIENCE)
                work()
            except BaseException as fault:
                faults.append(fault)
            finally:
                connection.close()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def calls(conversation: Conversation) -> None:
        for _ in range(5):
            try:
                start = begin_call(conversation)
            except LimitReached as limit:
                refused.append(limit)
                continue
            end_call(conversation, start, input_tokens=3)

    def people() -> None:
        for limit in (400, 300, 450):
            set_budget(actor=staff, unit="tokens", period="day", limit=limit, **subjects[1])
        for subject in subjects:
            set_budget(actor=staff, unit="tokens", period="total", limit=10_000, **subject)

    threads = [in_thread(lambda one=one: calls(one)) for one in conversations]  # type: ignore[misc]
    threads.append(in_thread(people))
    for thread in threads:
        thread.join(PATIENCE)
    assert not faults
    made = 30 - len(refused)
    assert made == Usage.objects.count() > 0
    for budget in Budget.objects.all():
        assert (current(budget).spent, current(budget).reserved) == (3 * made, 0)
    assert books_balance()


# --- money ----------------------------------------------------------------------------------------


@pytest.fixture
def dollars_of_acme(staff: User, acme: Organisation) -> SetBudget:
    def set_to(dollars: str, **other) -> Budget:
        fields = {"scope": Budget.Scope.ORGANISATION, "organisation": acme, "period": "total"}
        limit = units_of(Decimal(dollars))
        return set_budget(actor=staff, unit="money", limit=limit, **{**fields, **other})

    return set_to


def price(model: str = "m", from_prompt_tokens: int = 0, **rates) -> ModelPrice:
    usual = {"input": 10, "output": 100, "cache_write": 20, "cache_read": 1}
    return ModelPrice.objects.create(
        provider="scripted", model=model, from_prompt_tokens=from_prompt_tokens, **usual | rates
    )


def test_money_is_reserved_at_the_dearest_rate_and_settled_at_the_true_one(
    converse: Converse, dollars_of_acme: SetBudget
):
    price()
    conversation, _ = converse()
    budget = dollars_of_acme("1")
    start = begin_call(conversation, prompt=1_000, output=100)
    # 1,000 tokens written to the cache at $20 a million and 100 of output at $100 a million.
    assert current(budget).reserved == units_of(Decimal("0.03"))
    end_call(conversation, start, input_tokens=500, cache_read_input_tokens=400, output_tokens=3)
    assert current(budget).spent == units_of(Decimal("0.0057"))
    assert current(budget).spent == units_of(Usage.objects.get().cost or Decimal(0))


def test_a_dearer_price_for_long_prompts_is_reserved_and_so_is_a_dearer_one_for_short(
    converse: Converse, dollars_of_acme: SetBudget
):
    price(cache_write=50)
    price(from_prompt_tokens=900, input=40, cache_write=40)
    conversation, _ = converse()
    budget = dollars_of_acme("1")
    begin_call(conversation, prompt=1_000, output=0)
    assert current(budget).reserved == units_of(Decimal("0.05"))


def test_a_model_without_a_price_is_refused_under_a_budget_in_money(
    alice: User, converse: Converse, dollars_of_acme: SetBudget
):
    dollars_of_acme("1000")
    conversation, scripted = converse(["Never asked for."])
    post_message(actor=alice, conversation=conversation, text="Hi.")
    rested(conversation)
    assert not scripted.requests
    details = conversation.events.get(type="session.status_idle").value.stop_details
    assert details.code == "budget_reached"
    assert "has no price" in details.message
    assert "Staff can enter a price" in details.hint


def test_a_site_may_allow_models_without_a_price(
    converse: Converse, dollars_of_acme: SetBudget, tokens_of_acme: SetBudget, settings
):
    settings.AGENTSITE_BUDGETS_ALLOW_UNPRICED = True
    money, tokens = dollars_of_acme("0.01"), tokens_of_acme(1_000)
    conversation, _ = converse()
    start = begin_call(conversation)
    assert (current(money).reserved, current(tokens).reserved) == (0, 100)
    end_call(conversation, start, input_tokens=10)
    assert (current(money).spent, current(tokens).spent) == (0, 10)
    assert Usage.objects.get().cost is None


def test_a_price_that_is_removed_in_mid_call_makes_nothing_free(
    converse: Converse, dollars_of_acme: SetBudget
):
    row = price()
    budget = dollars_of_acme("1")
    conversation, _ = converse()
    start = begin_call(conversation, prompt=1_000, output=100)
    row.delete()
    end_call(conversation, start, input_tokens=10)
    assert current(budget).spent == units_of(Decimal("0.03"))


def test_a_free_model_is_let_through_whatever_was_spent(
    converse: Converse, dollars_of_acme: SetBudget
):
    price(input=0, output=0, cache_write=0, cache_read=0)
    dollars_of_acme("0")
    begin_call(converse()[0])


# --- the run's own door ---------------------------------------------------------------------------


def test_a_refused_start_leaves_a_note_and_nothing_else(
    converse: Converse, tokens_of_acme: SetBudget
):
    budget = tokens_of_acme(10)
    conversation, _ = converse()
    run = Run.objects.create(
        conversation=conversation, worker="here", lease_until=timezone.now() + timedelta(minutes=5)
    )
    start = SpanModelRequestStart(prompt_tokens_at_most=11)
    with pytest.raises(LimitReached):
        store(conversation.pk, run, [Entry.of(start)], 0)
    noted = BudgetStop.objects.get(conversation=conversation)
    assert (noted.period.budget, noted.needed, noted.released_at) == (budget, 11, None)
    assert types(conversation) == []
