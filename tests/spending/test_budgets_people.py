"""Who may see and set which budget, and what people are shown of them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from accounts.actions.organisations import create_organisation
from accounts.models import Organisation, Role, User
from chat.presentation import frames
from chat.presentation.panels import affected_panels
from conversations import log
from conversations.actions.sharing import share_conversation
from conversations.models import Conversation, Event
from harness.errors import Declined, Forbidden, Invalid, NotFound
from harness.events import ModelUsage, SpanModelRequestEnd, SpanModelRequestStart
from harness.history import Entry
from spending import budgets
from spending.actions.budgets import remove_budget, set_budget
from spending.amounts import units_of
from spending.models import Budget, BudgetPeriod
from spending.standings import standing
from tests.cast import ClientOf, join, make_user, shown
from tests.chat.drawing import make_conversation

pytestmark = pytest.mark.django_db

TOKENS: dict[str, Any] = {"unit": "tokens", "period": "month"}


@pytest.fixture
def hers(alice: User, acme: Organisation) -> Conversation:
    return make_conversation(alice, acme)


@pytest.fixture
def carol(acme: Organisation) -> User:
    """An administrator of Acme."""
    user = make_user("carol")
    join(user, acme, Role.ADMIN)
    return user


@pytest.fixture
def clerk(db) -> User:
    """Staff with the permission for budgets, member of nothing."""
    user = make_user("clerk", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="change_budget"))
    return User.objects.get(pk=user.pk)


def subject(scope: str, world: dict[str, Any]) -> dict[str, Any]:
    return {
        "deployment": {"scope": Budget.Scope.DEPLOYMENT},
        "organisation": {"scope": Budget.Scope.ORGANISATION, "organisation": world["acme"]},
        "user": {
            "scope": Budget.Scope.USER,
            "organisation": world["acme"],
            "user": world["bob"],
        },
        "conversation": {"scope": Budget.Scope.CONVERSATION, "conversation": world["his"]},
    }[scope]


ALLOWED = {
    "deployment": {"staff"},
    "organisation": {"staff", "clerk", "alice", "carol"},
    "user": {"staff", "clerk", "alice", "carol"},
    "conversation": {"staff", "clerk", "alice", "carol", "bob"},
}
"""Alice owns Acme, carol administers it, bob is a member whose conversation it is."""


@pytest.mark.parametrize("scope", ALLOWED)
@pytest.mark.parametrize("who", ["staff", "clerk", "alice", "carol", "bob", "mallory"])
def test_a_budget_is_set_and_lifted_by_those_who_may_and_nobody_else(
    request, acme: Organisation, bob: User, scope: str, who: str
):
    actor = request.getfixturevalue(who)
    world = {"acme": acme, "bob": bob, "his": make_conversation(bob, acme)}
    fields = {**subject(scope, world), **TOKENS, "limit": 10}
    if who in ALLOWED[scope]:
        made = set_budget(actor=actor, **fields)
        assert set_budget(actor=actor, **{**fields, "limit": 20}) == made
        made.refresh_from_db()
        assert made.limit == 20
        remove_budget(actor=actor, budget=made)
        assert not Budget.objects.in_force().exists()
        return
    stranger = who == "mallory" and scope != "deployment"
    with pytest.raises(NotFound if stranger else (Forbidden, NotFound)):
        set_budget(actor=actor, **fields)
    assert not Budget.objects.exists()
    made = set_budget(actor=request.getfixturevalue("staff"), **fields)
    with pytest.raises((Forbidden, NotFound)):
        remove_budget(actor=actor, budget=made)
    made.refresh_from_db()
    assert (made.limit, made.removed_at) == (10, None)


def test_bob_neither_sees_nor_sets_a_budget_of_alices(
    alice: User, bob: User, mallory: User, elsewhere: Organisation, acme: Organisation, hers
):
    own = set_budget(
        actor=alice, scope=Budget.Scope.USER, organisation=acme, user=alice, limit=5, **TOKENS
    )
    of_conversation = set_budget(
        actor=alice, scope=Budget.Scope.CONVERSATION, conversation=hers, limit=5, **TOKENS
    )
    shared = set_budget(
        actor=alice, scope=Budget.Scope.ORGANISATION, organisation=acme, limit=5, **TOKENS
    )
    assert set(Budget.objects.visible_to(bob)) == {shared}
    assert not Budget.objects.visible_to(mallory).exists()
    for stranger, organisation in ((bob, acme), (mallory, acme)):
        for fields in (
            {"scope": Budget.Scope.USER, "organisation": organisation, "user": alice},
            {"scope": Budget.Scope.CONVERSATION, "conversation": hers},
        ):
            with pytest.raises(NotFound):
                set_budget(actor=stranger, limit=0, **fields, **TOKENS)
        for budget in (own, of_conversation):
            with pytest.raises(NotFound):
                remove_budget(actor=stranger, budget=budget)


def test_the_owner_of_a_conversation_may_lower_what_a_manager_set_but_not_raise_or_lift_it(
    carol: User, bob: User, acme: Organisation
):
    his = make_conversation(bob, acme)
    fields = {"scope": Budget.Scope.CONVERSATION, "conversation": his, **TOKENS}
    budget = set_budget(actor=carol, limit=100, **fields)
    set_budget(actor=bob, limit=40, **fields)
    set_budget(actor=bob, limit=100, **fields)
    with pytest.raises(Forbidden, match="100 tokens"):
        set_budget(actor=bob, limit=101, **fields)
    with pytest.raises(Forbidden):
        remove_budget(actor=bob, budget=budget)
    set_budget(actor=carol, limit=500, **fields)
    set_budget(actor=bob, limit=500, **fields)


def test_the_owner_of_a_conversation_stays_within_what_the_organisation_allows(
    carol: User, bob: User, acme: Organisation
):
    set_budget(actor=carol, scope=Budget.Scope.ORGANISATION, organisation=acme, limit=50, **TOKENS)
    fields = {
        "scope": Budget.Scope.CONVERSATION,
        "conversation": make_conversation(bob, acme),
        **TOKENS,
    }
    set_budget(actor=bob, limit=50, **fields)
    with pytest.raises(Invalid, match="Acme allows no more than 50 tokens a month") as refused:
        set_budget(actor=bob, limit=51, **fields)
    assert refused.value.field == "limit"


def test_the_owner_of_a_conversation_is_told_nothing_of_the_budget_of_who_spoke_in_it_last(
    carol: User, alice: User, bob: User, acme: Organisation
):
    member = {"scope": Budget.Scope.USER, "organisation": acme, "user": alice, **TOKENS}
    set_budget(actor=carol, limit=7, **member)
    shared = make_conversation(bob, acme)
    Conversation.objects.filter(pk=shared.pk).update(asked_by=alice)
    shared.refresh_from_db()
    fields = {"scope": Budget.Scope.CONVERSATION, "conversation": shared, **TOKENS}
    assert set_budget(actor=bob, limit=50, **fields).limit == 50


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"limit": -1}, "limit"),
        ({"limit": 10**15 + 1}, "limit"),
        ({"unit": "euros"}, "unit"),
        ({"period": "week"}, "period"),
        ({"organisation": None}, "organisation"),
        ({"scope": Budget.Scope.USER}, "user"),
    ],
)
def test_a_wrong_budget_is_refused_by_the_name_of_its_field(
    alice: User, acme: Organisation, wrong: dict[str, Any], field: str
):
    fields = {"scope": Budget.Scope.ORGANISATION, "organisation": acme, "limit": 1, **TOKENS}
    with pytest.raises(Invalid) as refused:
        set_budget(actor=alice, **{**fields, **wrong})
    assert refused.value.field == field
    assert refused.value.hint
    assert not Budget.objects.exists()


def test_a_member_budget_is_for_members(alice: User, mallory: User, acme: Organisation):
    with pytest.raises(Invalid, match="does not belong to Acme"):
        set_budget(
            actor=alice, scope=Budget.Scope.USER, organisation=acme, user=mallory, limit=1, **TOKENS
        )


# --- how they stand -------------------------------------------------------------------------------


def spend(conversation: Conversation, tokens: int) -> None:
    start = Entry.of(SpanModelRequestStart(provider="scripted", model="m"))
    log.append(conversation.pk, [start])
    usage = ModelUsage(input_tokens=tokens)
    log.append(
        conversation.pk,
        [
            Entry.of(
                SpanModelRequestEnd(
                    model_request_start_id=start.uid, model_usage=usage, end="end_turn"
                )
            )
        ],
    )


@pytest.mark.parametrize(
    ("spent", "near", "reached"),
    [(79, False, False), (80, True, False), (99, True, False), (100, True, True)],
)
def test_people_are_warned_from_eighty_percent(
    alice: User, acme: Organisation, hers, spent: int, near: bool, reached: bool
):
    set_budget(actor=alice, scope=Budget.Scope.ORGANISATION, organisation=acme, limit=100, **TOKENS)
    spend(hers, spent)
    (seen,) = standing(hers)
    assert (seen.spent, seen.remaining, seen.percent) == (spent, 100 - spent, spent)
    assert (seen.is_near, seen.is_reached) == (near, reached)
    told = str(frames.page(hers).panels["budget"])
    assert (f"Only {seen.remaining_text} left." in told, "Used up." in told) == (
        near and not reached,
        reached,
    )
    assert bool(told) is near


def test_the_warning_asks_again_by_itself_and_goes_once_the_budget_is_raised(
    alice: User, acme: Organisation, mallory: User, hers, client_of: ClientOf
):
    given = {"actor": alice, "scope": Budget.Scope.ORGANISATION, "organisation": acme, **TOKENS}
    set_budget(limit=100, **given)
    spend(hers, 100)
    line = str(frames.page(hers).panels["budget"])
    (address,) = re.findall(r'hx-get="([^"]+)" hx-trigger="every ', line)
    assert client_of(alice).get(address).content.decode() == line
    assert client_of(mallory).get(address).status_code == 404
    set_budget(limit=1_000, **given)
    assert client_of(alice).get(address).content == b""


def test_a_run_that_begins_draws_the_warning_anew(hers):
    assert "budget" in affected_panels([Event(type="session.status_running", payload={})])


def test_nobody_is_warned_of_what_the_next_message_begins_anew(
    alice: User, acme: Organisation, hers
):
    fields = {**TOKENS, "period": Budget.Period.RUN}
    set_budget(actor=alice, scope=Budget.Scope.ORGANISATION, organisation=acme, limit=100, **fields)
    spend(hers, 90)
    assert frames.page(hers).panels["budget"] == ""


def test_the_standing_names_every_cap_in_three_queries(
    alice: User, acme: Organisation, staff: User, hers, django_assert_max_num_queries
):
    for fields in (
        {"scope": Budget.Scope.DEPLOYMENT},
        {"scope": Budget.Scope.ORGANISATION, "organisation": acme},
        {"scope": Budget.Scope.USER, "organisation": acme, "user": alice},
        {"scope": Budget.Scope.CONVERSATION, "conversation": hers},
    ):
        for unit in Budget.Unit.values:
            for period in Budget.Period.values:
                set_budget(actor=staff, unit=unit, period=period, limit=7, **fields)
    with django_assert_max_num_queries(3):
        seen = standing(hers)
    assert len(seen) == 32
    names = {each.name for each in seen}
    assert names == {"This server", "Acme", "alice in Acme", "This conversation"}


def test_the_meter_of_a_conversation_shows_its_budgets_and_warns(
    alice: User, acme: Organisation, hers, client_of: ClientOf
):
    set_budget(actor=alice, scope=Budget.Scope.ORGANISATION, organisation=acme, limit=100, **TOKENS)
    spend(hers, 85)
    page = client_of(alice).get(hers.get_absolute_url()).content.decode()
    assert "85 tokens of 100 tokens" in page
    assert "Only 15 tokens left." in page


def test_who_reads_along_is_told_of_no_budget_of_the_owners_alone_nor_she_of_a_writers(
    alice: User, acme: Organisation, bob: User, staff: User, hers, client_of: ClientOf
):
    for limit, who in ((77, alice), (88, bob)):
        set_budget(
            actor=alice,
            scope=Budget.Scope.USER,
            organisation=acme,
            user=who,
            limit=limit,
            **TOKENS,
        )
    set_budget(actor=staff, scope=Budget.Scope.PERSON, limit=66, **TOKENS)
    spend(hers, 70)
    page = client_of(alice).get(hers.get_absolute_url()).content.decode()
    assert "70 tokens of 77 tokens" in page
    share_conversation(actor=alice, conversation=hers, user_uid=bob.uid, role="writer")
    for who in (alice, bob):
        page = client_of(who).get(hers.get_absolute_url()).content.decode()
        assert "77 tokens" not in page
        assert "66 tokens" not in page
        assert "alice in Acme" not in page
    Conversation.objects.update(asked_by=bob, others_wrote=True)
    hers.refresh_from_db()
    page = client_of(alice).get(f"/c/{hers.uid}/budget/").content.decode()
    assert "77 tokens" in page
    assert "88 tokens" not in page
    assert {each.limit for each in standing(hers)} == {66, 77}


# --- pages ----------------------------------------------------------------------------------------

BUDGETS = "/usage/budgets/"


def post(client: Client, address: str = BUDGETS, **fields: Any):
    return client.post(address, {"unit": "tokens", "period": "month", "limit": "10", **fields})


def test_a_manager_sets_and_lifts_budgets_on_the_page(
    alice: User, acme: Organisation, bob: User, client_of: ClientOf
):
    client = client_of(alice)
    assert post(client, **shown(acme), scope=2).status_code == 302
    assert (
        post(client, **shown(acme), scope=3, user=bob.uid, unit="money", limit="2.50").status_code
        == 302
    )
    shared, his = Budget.objects.order_by("pk")
    assert (shared.scope, shared.organisation, shared.limit) == (2, acme, 10)
    assert (his.user, his.limit) == (bob, units_of(Decimal("2.50")))
    page = client.get(BUDGETS).content.decode()
    assert "0 tokens of 10 tokens" in page
    assert "$0.00 of $2.50" in page
    assert client.post(f"{BUDGETS}{his.uid}/remove/").status_code == 302
    assert list(Budget.objects.in_force()) == [shared]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"scope": 2, "limit": "1.5"}, "whole numbers"),
        ({"scope": 2, "limit": "-1"}, "too small. Give 0 or more"),
        ({"scope": 3}, "Choose the member"),
        ({"scope": 1}, "not among the choices"),
    ],
)
def test_a_wrong_budget_is_answered_beside_the_form(
    alice: User, acme: Organisation, client_of: ClientOf, fields: dict[str, Any], words: str
):
    response = post(client_of(alice), **shown(acme), **fields)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not Budget.objects.exists()


def test_a_member_sees_the_shared_budget_and_cannot_set_any(
    alice: User, bob: User, acme: Organisation, client_of: ClientOf
):
    shared = set_budget(
        actor=alice, scope=Budget.Scope.ORGANISATION, organisation=acme, limit=77, **TOKENS
    )
    client = client_of(bob)
    page = client.get(BUDGETS).content.decode()
    assert "77 tokens" in page
    assert "Set a budget" not in page
    assert "/remove/" not in page
    assert post(client, **shown(acme), scope=2).status_code == 404
    assert client.post(f"{BUDGETS}{shared.uid}/remove/").status_code == 403


def test_a_stale_tab_sets_no_budget_in_the_organisation_switched_to(
    alice: User, acme: Organisation, client_of: ClientOf
):
    client = client_of(alice)
    assert acme.uid in client.get(BUDGETS).content.decode()
    second = create_organisation(actor=alice, name="Second")
    client.post("/organisation/switch/", {"organisation": second.uid})

    refused = post(client, **shown(acme), scope=2)

    assert refused.status_code == 409
    assert "in another tab" in refused.content.decode()
    assert post(client, scope=2).status_code == 422
    assert not Budget.objects.exists()


def test_mallory_finds_no_budget_of_acme(
    alice: User, acme: Organisation, hers, mallory: User, elsewhere, client_of: ClientOf
):
    budget = set_budget(
        actor=alice, scope=Budget.Scope.ORGANISATION, organisation=acme, limit=77, **TOKENS
    )
    client = client_of(mallory)
    assert "77 tokens" not in client.get(BUDGETS).content.decode()
    assert client.post(f"{BUDGETS}{budget.uid}/remove/").status_code == 404
    assert client.get(f"/c/{hers.uid}/budget/").status_code == 404
    assert post(client, f"/c/{hers.uid}/budget/").status_code == 404


def test_a_conversations_budget_is_set_on_its_page(alice: User, hers, client_of: ClientOf):
    client = client_of(alice)
    address = f"/c/{hers.uid}/budget/"
    assert post(client, address, period="total", limit="500").status_code == 302
    budget = Budget.objects.get()
    assert (budget.conversation, budget.limit) == (hers, 500)
    assert "0 tokens of 500 tokens" in client.get(address).content.decode()
    response = client.post(f"{BUDGETS}{budget.uid}/remove/", {"next": address})
    assert response["Location"] == address


def test_staff_set_and_lift_budgets_in_the_admin(
    staff: User, acme: Organisation, client_of: ClientOf
):
    client = client_of(staff)
    fields = {"scope": 2, "organisation": acme.pk, "user": "", **TOKENS, "amount": "12"}
    response = client.post("/admin/spending/budget/add/", fields)
    assert response.status_code == 302, response.content.decode()[-3000:]
    budget = Budget.objects.get()
    assert (budget.limit, budget.created_by) == (12, staff)
    address = f"/admin/spending/budget/{budget.pk}"
    assert client.post(f"{address}/change/", {"amount": "30"}).status_code == 302
    budget.refresh_from_db()
    assert budget.limit == 30
    assert BudgetPeriod.objects.get().limit == 30
    assert "30 tokens" in client.get("/admin/spending/budget/").content.decode()
    assert client.post(f"{address}/delete/", {"post": "yes"}).status_code == 302
    budget.refresh_from_db()
    assert budget.removed_at is not None
    wrong = client.post("/admin/spending/budget/add/", {**fields, "scope": 3})
    assert wrong.status_code == 200
    assert "names exactly that" in wrong.content.decode()


def test_every_refusal_has_a_stable_code():
    assert budgets.CapReached.code == "budget_reached"
    assert issubclass(Forbidden, Declined)
