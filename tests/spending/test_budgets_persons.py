"""No budget is escaped through what anybody may make: organisations and service accounts."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from accounts.actions.members import remove_member
from accounts.actions.organisations import create_organisation
from accounts.actions.provider_keys import store_provider_key
from accounts.actions.service_accounts import create_service_account
from accounts.models import Membership, Organisation, Role, User
from accounts.provider_keys import resolve
from agents.models import Environment
from conversations.actions.conversations import create_conversation
from conversations.kits import choose_provider, plan_kit
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from harness.errors import Forbidden, LimitReached
from harness.events import SpanModelRequestStart
from harness.messages import Usage as Tokens
from spending.actions.budgets import remove_budget, set_budget
from spending.apart import hold_apart, settle_apart
from spending.budgets import CapReached
from spending.models import Budget, BudgetPeriod, Reservation, Usage
from spending.standings import standing
from tests.cast import ClientOf, join
from tests.conversations.conftest import MakeAgent
from tests.spending.test_budgets import begin_call, books_balance, end_call

pytestmark = pytest.mark.django_db(transaction=True)

TOKENS: dict[str, Any] = {"unit": "tokens", "period": "month"}
Begin = Callable[..., Conversation]
OURS = {"server_keys": True}


@pytest.fixture
def begin(make_agent: MakeAgent, environment: Environment) -> Begin:
    agent = make_agent()

    def make(owner: User, organisation: Organisation) -> Conversation:
        return create_conversation(
            actor=owner, organisation=organisation, agent=agent, environment=environment
        )

    return make


@pytest.fixture
def robot(alice: User, acme: Organisation) -> User:
    return create_service_account(actor=alice, organisation=acme, name="Robot")


def spend(conversation: Conversation, tokens: int, **fields: Any) -> None:
    end_call(conversation, begin_call(conversation, **fields), input_tokens=tokens)


def of_each(staff: User, limit: int, **more: Any) -> Budget:
    return set_budget(actor=staff, scope=Budget.Scope.PERSON, limit=limit, **TOKENS, **more)


def shares(budget: Budget) -> dict[str, int]:
    rows = BudgetPeriod.objects.filter(budget=budget).values_list("user__username", "spent")
    return dict(rows)


# --- service accounts -----------------------------------------------------------------------------


def test_what_a_service_account_spends_counts_in_its_makers_budget(
    alice: User, acme: Organisation, robot: User, begin: Begin
) -> None:
    set_budget(
        actor=alice, scope=Budget.Scope.USER, organisation=acme, user=alice, limit=150, **TOKENS
    )
    spend(begin(robot, acme), 100)

    for who in (alice, robot):
        with pytest.raises(CapReached):
            begin_call(begin(who, acme))
    assert BudgetPeriod.objects.get().spent == 100


def test_a_new_budget_counts_what_her_service_account_had_spent(
    alice: User, acme: Organisation, robot: User, begin: Begin
) -> None:
    spend(begin(robot, acme), 100)

    set_budget(
        actor=alice, scope=Budget.Scope.USER, organisation=acme, user=alice, limit=150, **TOKENS
    )

    assert BudgetPeriod.objects.get().spent == 100


def test_when_its_maker_leaves_the_longest_standing_owner_is_charged(
    alice: User, bob: User, acme: Organisation, robot: User, begin: Begin
) -> None:
    Membership.objects.filter(user=bob).update(role=Role.OWNER)
    hers, his = (
        set_budget(
            actor=alice, scope=Budget.Scope.USER, organisation=acme, user=who, limit=500, **TOKENS
        )
        for who in (alice, bob)
    )
    work = begin(robot, acme)
    under_way = begin_call(work)
    remove_member(actor=alice, membership=Membership.objects.get(user=alice, organisation=acme))

    end_call(work, under_way, input_tokens=70)
    spend(begin(robot, acme), 100)

    assert BudgetPeriod.objects.get(budget=his).spent == 170
    # What was reserved in hers is settled there: it was hers when the call began.
    assert BudgetPeriod.objects.get(budget=hers).spent == 70
    assert not Reservation.objects.exists()
    assert books_balance()


def test_an_organisation_has_so_many_service_accounts_and_no_more(
    alice: User, acme: Organisation, settings: Any
) -> None:
    settings.AGENTSITE_SERVICE_ACCOUNTS_PER_ORGANISATION = 2
    for name in ("One", "Two"):
        create_service_account(actor=alice, organisation=acme, name=name)

    with pytest.raises(LimitReached) as refused:
        create_service_account(actor=alice, organisation=acme, name="Three")

    assert "2" in refused.value.message
    assert User.objects.filter(kind=User.Kind.SERVICE).count() == 2


# --- organisations --------------------------------------------------------------------------------


def test_a_person_makes_so_many_organisations_and_no_more_though_she_gives_them_away(
    alice: User, bob: User, settings: Any
) -> None:
    settings.AGENTSITE_ORGANISATIONS_PER_PERSON = 3  # one is Acme, in which bob is
    for name in ("Two", "Three"):
        made = create_organisation(actor=alice, name=name)
        join(bob, made, Role.OWNER)
        remove_member(actor=alice, membership=Membership.objects.get(user=alice, organisation=made))

    with pytest.raises(LimitReached) as refused:
        create_organisation(actor=alice, name="Four")

    assert "3" in refused.value.message
    with pytest.raises(Forbidden):
        robot = create_service_account(
            actor=alice, organisation=Organisation.objects.get(name="Acme"), name="Robot"
        )
        create_organisation(actor=robot, name="Its own")


def test_administrators_of_the_server_are_not_held_to_a_number_of_organisations(
    staff: User, settings: Any
) -> None:
    settings.AGENTSITE_ORGANISATIONS_PER_PERSON = 0

    assert create_organisation(actor=staff, name="Ops").pk


# --- the server's keys ----------------------------------------------------------------------------


def test_what_a_person_spends_on_the_servers_keys_counts_across_organisations(
    staff: User, alice: User, bob: User, acme: Organisation, robot: User, begin: Begin
) -> None:
    second = create_organisation(actor=alice, name="Second")
    budget = of_each(staff, 250)

    spend(begin(alice, acme), 100, **OURS)
    spend(begin(robot, acme), 80, **OURS)
    with pytest.raises(CapReached) as refused:
        begin_call(begin(alice, second), **OURS)

    assert "server" in refused.value.hint
    assert shares(budget) == {"alice": 180}
    spend(begin(alice, second), 500)  # with a key of her own
    spend(begin(bob, acme), 40, **OURS)
    assert shares(budget) == {"alice": 180, "bob": 40}
    assert [each.spent for each in standing(begin(alice, second))] == [180]


def test_a_budget_for_each_person_begins_with_what_each_has_spent(
    staff: User, alice: User, bob: User, acme: Organisation, begin: Begin
) -> None:
    spend(begin(alice, acme), 90, **OURS)
    spend(begin(bob, acme), 20, **OURS)
    spend(begin(bob, acme), 500)

    assert shares(of_each(staff, 100)) == {"alice": 90, "bob": 20}


def test_one_persons_own_budget_replaces_that_for_each_until_it_is_lifted(
    staff: User, alice: User, acme: Organisation, begin: Begin
) -> None:
    default = of_each(staff, 100)
    own = of_each(staff, 1_000, user=alice)
    work = begin(alice, acme)

    for _time in range(3):
        spend(work, 100, **OURS)
    remove_budget(actor=staff, budget=own)

    assert shares(default) == {"alice": 300}
    with pytest.raises(CapReached):
        begin_call(work, **OURS)


def test_calls_of_no_conversation_count_for_each_beside_ones_own_as_well(
    staff: User, alice: User, acme: Organisation
) -> None:
    default = of_each(staff, 100)
    own = of_each(staff, 1_000, user=alice)
    begun = SpanModelRequestStart(
        purpose="embedding", prompt_tokens_at_most=150, server_keys=True, model="m", provider="p"
    )
    ended = hold_apart(begun, organisation=acme.pk, user=alice.pk)
    under_way = hold_apart(begun, organisation=acme.pk, user=alice.pk)
    assert ended is not None
    assert under_way is not None

    settle_apart(ended, Tokens(input_tokens=120))
    remove_budget(actor=staff, budget=own)
    settle_apart(under_way, Tokens(input_tokens=30))

    assert shares(default) == {"alice": 150}
    assert hold_apart(begun, organisation=acme.pk, user=alice.pk) is None
    assert Usage.objects.count() == 2


def test_a_raised_budget_for_each_holds_for_everybody_at_once(
    staff: User, alice: User, bob: User, acme: Organisation, begin: Begin
) -> None:
    of_each(staff, 120)
    for who in (alice, bob):
        spend(begin(who, acme), 100, **OURS)
    of_each(staff, 220)

    for who in (alice, bob):
        begin_call(begin(who, acme), **OURS)
    assert books_balance()


def test_only_administrators_of_the_server_set_what_persons_spend_on_its_keys(
    alice: User, mallory: User
) -> None:
    for who in (alice, mallory):
        with pytest.raises(Forbidden):
            of_each(who, 10)
    assert not Budget.objects.exists()


def test_a_member_sees_her_own_share_and_no_budget_of_another(
    staff: User,
    alice: User,
    bob: User,
    acme: Organisation,
    begin: Begin,
    client_of: ClientOf,
) -> None:
    of_each(staff, 1_000)
    of_each(staff, 777_777, user=bob)
    spend(begin(alice, acme), 123, **OURS)

    page = client_of(alice).get("/usage/budgets/").content.decode()

    assert "Each person on this server" in page
    assert "123" in page
    assert "777,777" not in page


def test_a_run_says_whether_it_uses_the_servers_keys(
    alice: User, acme: Organisation, settings: Any
) -> None:
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "ours", "base_url": ""}}
    config = AgentConfig(provider="anthropic", model="m")

    assert resolve(alice, acme, "anthropic") is not None
    assert choose_provider(config, alice, acme).server_keys
    assert not choose_provider(AgentConfig(provider="demo"), alice, acme).server_keys


def test_a_run_at_another_name_of_the_servers_own_service_uses_the_servers_keys(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {"key": "", "base_url": "https://93.184.216.34/v1"}
    settings.AGENTSITE_PROVIDER_KEYS = {"openai_compatible": ours}
    found = [(0, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_asked, **_named: found)
    config = AgentConfig(provider="openai_compatible", model="m")
    store_provider_key(
        actor=alice,
        scope="user",
        provider="openai_compatible",
        key="sk-any",
        base_url="https://alias.example.net/v1",
    )
    agent = make_agent("Theirs", provider="openai_compatible", model="m")
    conversation = create_conversation(
        actor=alice, organisation=acme, agent=agent, environment=environment
    )

    assert not choose_provider(config, alice, acme).server_keys
    assert plan_kit(conversation).choice.server_keys


def test_a_key_row_without_a_key_escapes_no_budget_at_the_servers_own_service(
    alice: User, acme: Organisation, settings: Any
) -> None:
    ours = {"key": "", "base_url": "http://localhost:11434/v1"}
    settings.AGENTSITE_PROVIDER_KEYS = {"openai_compatible": ours}
    config = AgentConfig(provider="openai_compatible", model="m")
    store_provider_key(
        actor=alice,
        scope="user",
        provider="openai_compatible",
        key="",
        base_url="http://LOCALHOST:11434/v1/",
    )

    assert choose_provider(config, alice, acme).server_keys
