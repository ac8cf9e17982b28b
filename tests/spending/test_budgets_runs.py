"""Budgets for each run: in money and tokens, with its helpers, counted anew by the next message."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import Organisation, TokenScope, User
from conversations.actions.conversations import delete_conversation
from conversations.actions.messages import post_message
from conversations.models import Conversation
from harness.errors import Invalid, LimitReached
from harness.messages import Usage as Tokens
from providers.scripted import call, reply
from spending.actions.budgets import resume_stopped, set_budget
from spending.amounts import units_of
from spending.models import Budget, BudgetPeriod, BudgetStop, ModelPrice
from spending.standings import standing
from tests.approvals.test_asked_first import program
from tests.cast import ClientOf
from tests.conversations.conftest import Converse, rested, still
from tests.spending.test_budgets import begin_call, end_call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("one_day")]

READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
SetBudget = Callable[..., Budget]


@pytest.fixture
def a_run_may_use(acme: Organisation, alice: User) -> SetBudget:
    """Set what each run in Acme may use."""

    def set_to(limit: int, **other) -> Budget:
        fields = {"scope": Budget.Scope.ORGANISATION, "organisation": acme, "unit": "tokens"}
        return set_budget(actor=alice, period="run", limit=limit, **{**fields, **other})

    return set_to


def spent(conversation: Conversation) -> tuple[int, int]:
    row = BudgetPeriod.objects.get(conversation=conversation)
    return row.spent, row.reserved


def test_a_run_ends_at_its_dollars_and_the_next_message_begins_with_all_of_them(
    alice: User, converse: Converse, a_run_may_use: SetBudget
) -> None:
    million = {"input": 10, "output": 0, "cache_write": 0, "cache_read": 0}
    ModelPrice.objects.create(provider="scripted", model="", **million)
    usage = Tokens(input_tokens=60_000)
    looks = reply(call("list_files"), usage=usage)
    conversation, scripted = converse([looks, looks, looks, looks])
    # The second call of a run may cost less than is left after the first, the third not.
    a_run_may_use(units_of(Decimal("1.19")), unit="money")

    post_message(actor=alice, conversation=conversation, text="Look twice.")
    rested(conversation)

    assert conversation.stop_reason == "budget_reached"
    assert len(scripted.requests) == 2
    details = conversation.events.get(type="session.status_idle").value.stop_details
    assert details.code == "budget_reached"
    assert "$1.19 a run" in details.message
    assert "begins another run" in details.hint

    post_message(actor=alice, conversation=conversation, text="Again.")
    rested(conversation, 2)

    assert len(scripted.requests) == 4
    assert spent(conversation) == (units_of(Decimal("1.20")), 0)


def test_the_runs_of_two_conversations_are_counted_apart(
    converse: Converse, a_run_may_use: SetBudget
) -> None:
    a_run_may_use(150)
    one, other = converse()[0], converse()[0]
    for conversation in (one, other):
        start = begin_call(conversation, turn="sevt_1")
        end_call(conversation, start, input_tokens=60)

    for conversation in (one, other):
        assert spent(conversation) == (60, 0)
        with pytest.raises(LimitReached, match="150 tokens a run"):
            begin_call(conversation, turn="sevt_1")
    begin_call(one, turn="sevt_2")
    assert spent(one) == (0, 100)
    assert spent(other) == (60, 0)


def test_a_helper_draws_on_the_run_that_began_it_and_no_call_without_a_run_begins_another(
    converse: Converse, a_run_may_use: SetBudget
) -> None:
    a_run_may_use(250)
    parent, child = converse()[0], converse()[0]
    Conversation.objects.filter(pk=child.pk).update(parent=parent)
    begin_call(parent, turn="sevt_1")

    start = begin_call(child, turn="sevt_of_the_child")
    with pytest.raises(LimitReached):
        begin_call(child, turn="sevt_another_of_the_child")
    with pytest.raises(LimitReached):
        begin_call(parent, turn="")  # such as a title

    end_call(child, start, input_tokens=30)
    assert spent(parent) == (30, 100)
    assert not BudgetPeriod.objects.filter(conversation=child).exists()


def test_another_limit_caps_each_run_and_not_all_of_them_together(
    converse: Converse, a_run_may_use: SetBudget
) -> None:
    a_run_may_use(500)
    one, other = converse()[0], converse()[0]
    for conversation in (one, other):
        end_call(conversation, begin_call(conversation, turn="sevt_1"), input_tokens=60)
    a_run_may_use(150)

    for conversation in (one, other):
        with pytest.raises(LimitReached, match="150 tokens a run"):
            begin_call(conversation, turn="sevt_1")
        begin_call(conversation, turn="sevt_2")
        assert spent(conversation) == (0, 100)
    assert not BudgetPeriod.objects.filter(conversation=None).exists()


def test_a_budget_for_each_run_stands_where_people_began(alice: User, converse: Converse) -> None:
    parent, child = converse()[0], converse()[0]
    Conversation.objects.filter(pk=child.pk).update(parent=parent)
    child.refresh_from_db()
    fields: dict[str, Any] = {
        "scope": Budget.Scope.CONVERSATION,
        "unit": "tokens",
        "limit": 100,
    }

    with pytest.raises(Invalid, match="that people began") as problem:
        set_budget(actor=alice, period="run", conversation=child, **fields)
    assert problem.value.field == "period"
    set_budget(actor=alice, period="total", conversation=child, **fields)


def test_a_budget_that_is_younger_than_the_run_counts_what_the_run_has_used(
    alice: User, converse: Converse, a_run_may_use: SetBudget
) -> None:
    conversation, _script = converse(
        [reply(call("list_files"), usage=Tokens(input_tokens=500)), "Done."]
    )
    post_message(actor=alice, conversation=conversation, text="Look.")
    rested(conversation)
    taken = conversation.events.filter(type="span.model_request_start").first().value.turn
    assert conversation.events.get(uid=taken).type == "x.input_taken"

    a_run_may_use(10_000)
    begin_call(conversation, turn=taken)

    assert spent(conversation)[0] >= 500


def test_a_run_that_is_stopped_begins_no_other_by_itself(
    alice: User, converse: Converse, a_run_may_use: SetBudget
) -> None:
    """What helpers leave of it is nothing to go on with: that would be another run's budget."""
    budget = a_run_may_use(1)
    conversation, _script = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    assert BudgetStop.objects.held().filter(conversation=conversation).exists()
    other = converse()[0]
    row = BudgetPeriod.objects.create(
        budget=budget, starts_on="1970-01-01", conversation=other, limit=10**9
    )
    BudgetStop.objects.update(period=row, needed=1)
    end_call(other, begin_call(other, 1, 0))
    resume_stopped()
    still()
    assert conversation.stop_reason == "budget_reached"

    a_run_may_use(1_000_000)
    rested(conversation, 2)
    assert conversation.stop_reason == "end_turn"


def test_the_page_of_a_conversation_sets_it_and_shows_its_run_and_no_others(
    alice: User, mallory: User, converse: Converse, client_of: ClientOf
) -> None:
    conversation, other = converse()[0], converse()[0]
    form = {"limit": "0.50", "unit": "money", "period": "run"}
    address = f"/c/{conversation.uid}/budget/"

    assert client_of(mallory).post(address, form).status_code == 404
    assert client_of(alice).post(address, form).status_code == 302

    assert "a run" in client_of(alice).get(address).content.decode()
    (one,) = standing(conversation)
    assert (one.limit_text, one.period_text, one.spent) == ("$0.50", "a run", 0)
    assert standing(other) == []


def test_a_program_sets_reads_and_lifts_the_budget_of_a_conversations_runs(
    alice: User,
    bob: User,
    mallory: User,
    acme: Organisation,
    elsewhere: Organisation,
    converse: Converse,
) -> None:
    conversation = converse()[0]
    address = f"/api/conversations/{conversation.uid}/budgets"
    fields = {"unit": "money", "period": "run", "limit": 250_000}
    client = program(alice, acme, READ, WRITE)

    (row,) = client.put(address, fields, "application/json").json()

    assert Budget.objects.get().limit_text == "$0.25"
    assert row == client.get(address).json()[0]
    assert (row["scope"], row["period"], row["limit"], row["spent"]) == (
        "conversation",
        "run",
        250_000,
        0,
    )
    for who, where in ((bob, acme), (mallory, elsewhere)):
        stranger = program(who, where, READ, WRITE)
        assert stranger.get(address).status_code == 404
        assert stranger.put(address, fields, "application/json").status_code == 404
    assert program(alice, acme, READ).put(address, fields, "application/json").status_code == 403
    wrong = client.put(address, {**fields, "limit": -1}, "application/json")
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "limit")

    lift = {**fields, "limit": None}
    assert client.put(address, lift, "application/json").json() == []
    assert client.put(address, lift, "application/json").status_code == 404


def test_the_admin_adds_up_no_runs_of_different_conversations(
    staff: User, converse: Converse, a_run_may_use: SetBudget, client_of: ClientOf
) -> None:
    a_run_may_use(1_000)
    for number in (1, 2):
        conversation = converse()[0]
        end_call(
            conversation, begin_call(conversation, turn=f"sevt_{number}"), input_tokens=70 * number
        )

    page = client_of(staff).get("/admin/spending/budget/").content.decode()

    assert "1,000 tokens" in page
    assert "210 tokens" not in page


def test_a_conversation_that_is_deleted_takes_its_run_along(
    alice: User, converse: Converse, a_run_may_use: SetBudget
) -> None:
    a_run_may_use(1)
    conversation, _script = converse(["Done."])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    still()

    delete_conversation(actor=alice, conversation=conversation)

    assert not BudgetPeriod.objects.exists()
    assert not BudgetStop.objects.exists()
