"""Rules in the table: who makes and revokes which, where they hold, and what a simulation says."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from accounts.models import Membership, Organisation, Role, User
from agents.models import Agent, Environment
from approvals.actions.approvals import decide_approval
from approvals.actions.rules import revoke_rule, save_rule
from approvals.actions.simulation import simulate_call
from approvals.models import PolicyRule
from approvals.policyrules import held_for
from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation
from conversations.models import Conversation
from harness.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from tests.approvals.asking import a_reviewer, asks
from tests.cast import join, make_user
from tests.conversations.conftest import MakeAgent

pytestmark = pytest.mark.django_db

DENY_BASH = {"tool": "bash", "permission": "always_deny"}
ASK_BASH = {"tool": "bash", "permission": "always_ask"}


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return make_agent(provider="demo")


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, agent: Agent
) -> Conversation:
    return create_conversation(actor=alice, organisation=acme, agent=agent, environment=environment)


def held(conversation: Conversation) -> list[str]:
    return [rule.uid for rule in held_for(conversation)]


# --- where they hold ------------------------------------------------------------------------------


def test_rules_of_every_level_reach_a_conversation_and_those_from_elsewhere_do_not(
    alice: User,
    mallory: User,
    staff: User,
    acme: Organisation,
    elsewhere: Organisation,
    conversation: Conversation,
    agent: Agent,
    make_agent: MakeAgent,
) -> None:
    here = [
        save_rule(actor=staff, level="deployment", rule=ASK_BASH),
        save_rule(actor=alice, level="organisation", organisation=acme, rule=ASK_BASH),
        save_rule(actor=alice, level="agent", agent=agent, organisation=acme, rule=ASK_BASH),
        save_rule(actor=staff, level="agent", agent=agent, rule=ASK_BASH),
        save_rule(actor=alice, level="conversation", conversation=conversation, rule=ASK_BASH),
    ]
    save_rule(actor=mallory, level="organisation", organisation=elsewhere, rule=DENY_BASH)
    save_rule(actor=mallory, level="agent", agent=agent, organisation=elsewhere, rule=DENY_BASH)
    save_rule(actor=staff, level="agent", agent=make_agent("Other"), rule=DENY_BASH)

    assert held(conversation) == [rule.uid for rule in here]


def test_what_members_allowed_in_advance_leaves_room_for_rules(
    alice: User,
    acme: Organisation,
    conversation: Conversation,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)
    monkeypatch.setattr("approvals.actions.rules.MOST_RULES", 1)
    asked = asks(conversation)
    decide_approval(
        actor=alice,
        approval=asked,
        verdict="approve",
        input_hash=asked.effective_sha256,
        seen_round=asked.round,
        scope="always",
    )
    there: dict[str, Any] = {"level": "agent", "agent": agent, "organisation": acme}
    save_rule(actor=alice, rule=DENY_BASH, **there)
    with pytest.raises(Conflict):
        save_rule(actor=alice, rule=ASK_BASH, **there)


def test_a_revoked_rule_holds_no_more_and_both_are_in_the_audit_log(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    rule = save_rule(
        actor=alice, level="organisation", organisation=acme, rule=DENY_BASH, note="No shell."
    )

    revoke_rule(actor=alice, rule=rule, reason="We need it.")

    assert held(conversation) == []
    with pytest.raises(Conflict):
        revoke_rule(actor=alice, rule=rule)
    rows = AuditEntry.objects.filter(rule_uid=rule.uid).order_by("id")
    assert [(row.action, row.reason, row.actor) for row in rows] == [
        ("rule_saved", "No shell.", alice),
        ("rule_revoked", "We need it.", alice),
    ]


def test_a_rule_without_its_place_cannot_be_stored(acme: Organisation) -> None:
    for wrong in (
        {"scope": "organisation"},
        {"scope": "agent"},
        {"scope": "conversation", "organisation": acme},
        {"scope": "deployment", "organisation": acme},
        {"scope": "everywhere"},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            PolicyRule.objects.create(tool="*", permission="always_deny", **wrong)


# --- who may --------------------------------------------------------------------------------------


def test_a_member_and_a_reviewer_rule_neither_organisation_nor_agent_nor_server(
    alice: User, bob: User, acme: Organisation, agent: Agent
) -> None:
    places: list[dict[str, Any]] = [
        {"level": "deployment"},
        {"level": "organisation", "organisation": acme},
        {"level": "agent", "agent": agent, "organisation": acme},
        {"level": "agent", "agent": agent},
    ]
    for who in (bob, a_reviewer(acme)):
        for place in places:
            with pytest.raises(Forbidden):
                save_rule(actor=who, rule=DENY_BASH, **place)
    with pytest.raises(Forbidden):
        save_rule(actor=alice, level="deployment", rule=DENY_BASH)
    with pytest.raises(Forbidden):
        save_rule(actor=alice, level="agent", agent=agent, rule=DENY_BASH)
    assert not PolicyRule.objects.exists()


def test_mallory_neither_makes_sees_nor_revokes_a_rule_of_alices(
    alice: User,
    bob: User,
    mallory: User,
    acme: Organisation,
    elsewhere: Organisation,
    conversation: Conversation,
    make_agent: MakeAgent,
) -> None:
    private = make_agent("Acme's own", organisation=acme)
    rule = save_rule(actor=alice, level="organisation", organisation=acme, rule=ASK_BASH)
    own = save_rule(actor=alice, level="conversation", conversation=conversation, rule=ASK_BASH)

    places: list[dict[str, Any]] = [
        {"level": "organisation", "organisation": acme},
        {"level": "agent", "agent": private, "organisation": elsewhere},
        {"level": "agent", "agent": private},
        {"level": "conversation", "conversation": conversation},
    ]
    for place in places:
        with pytest.raises(NotFound):
            save_rule(actor=mallory, rule=DENY_BASH, **place)
    for held_rule in (rule, own):
        with pytest.raises(NotFound):
            revoke_rule(actor=mallory, rule=held_rule)
    assert not PolicyRule.objects.visible_to(mallory).exists()
    assert list(PolicyRule.objects.visible_to(bob)) == [rule]
    with pytest.raises(NotFound):
        save_rule(actor=bob, level="conversation", conversation=conversation, rule=ASK_BASH)


def test_in_ones_own_conversation_one_may_tighten_and_not_loosen(
    alice: User, conversation: Conversation
) -> None:
    with pytest.raises(Invalid) as refused:
        save_rule(
            actor=alice,
            level="conversation",
            conversation=conversation,
            rule={"tool": "bash", "permission": "always_allow"},
        )

    assert refused.value.field == "rule.permission"


def test_a_member_does_not_take_back_what_the_organisation_forbids(
    alice: User, bob: User, acme: Organisation
) -> None:
    rule = save_rule(actor=alice, level="organisation", organisation=acme, rule=DENY_BASH)

    with pytest.raises(Forbidden):
        revoke_rule(actor=bob, rule=rule)


def test_who_was_an_administrator_and_left_rules_nothing_any_more(
    acme: Organisation,
) -> None:
    carol = make_user("carol")
    join(carol, acme, Role.ADMIN)
    rule = save_rule(actor=carol, level="organisation", organisation=acme, rule=DENY_BASH)
    Membership.objects.filter(user=carol).delete()

    with pytest.raises(NotFound):
        revoke_rule(actor=carol, rule=rule)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({}, "rule.tool"),
        ({"tool": ""}, "rule.tool"),
        ({"tool": "x" * 129}, "rule.tool"),
        ({"tool": "bash", "permission": "sometimes"}, "rule.permission"),
        ({"tool": "bash", "colour": "red"}, "rule.colour"),
        ({"tool": "bash", "when": {"regex": "."}}, "rule.when"),
        ({"tool": "bash", "options": {"expires_seconds": 0}}, "rule.options.expires_seconds"),
        ({"tool": "bash", "options": {"three_people": True}}, "rule.options.three_people"),
    ],
)
def test_a_broken_rule_is_refused_by_the_place_of_its_fault(
    alice: User, acme: Organisation, rule: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        save_rule(actor=alice, level="organisation", organisation=acme, rule=rule)

    assert refused.value.field.startswith(field)
    assert not AuditEntry.objects.filter(action="rule_saved").exists()


def test_a_level_that_is_none_and_a_place_that_is_missing_are_named(
    alice: User, staff: User, acme: Organisation
) -> None:
    for level, field in [
        ("galaxy", "level"),
        ("run", "level"),
        ("organisation", "organisation"),
        ("agent", "agent"),
        ("conversation", "conversation"),
    ]:
        with pytest.raises(Invalid) as refused:
            save_rule(actor=alice, level=level, rule=DENY_BASH)
        assert refused.value.field == field
    with pytest.raises(TooLarge):
        save_rule(actor=staff, level="deployment", rule=DENY_BASH, note="x" * 501)


# --- simulation -----------------------------------------------------------------------------------


def test_a_simulation_says_what_would_happen_by_which_rule_and_what_is_safer(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    given = {"path": "live/a.txt", "content": "x"}
    free = simulate_call(actor=alice, conversation=conversation, tool="write_file", input=given)
    rule = save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={
            "tool": "write_file",
            "permission": "always_ask",
            "when": {"argument": "path", "path": "live/**"},
            "options": {"two_people": True},
        },
    )

    asked = simulate_call(actor=alice, conversation=conversation, tool="write_file", input=given)

    assert (free.verdict, free.rule) == ("allow", "")
    assert (asked.verdict, asked.level, asked.rule) == ("ask", "organisation", rule.uid)
    assert "live/**" in asked.reason
    assert asked.terms is not None
    assert asked.terms.two_people
    assert asked.safer
    assert "write_file" not in asked.safer
    assert conversation.events.count() == 0


def test_a_simulation_tells_of_an_input_that_breaks_the_schema(
    alice: User, conversation: Conversation
) -> None:
    found = simulate_call(
        actor=alice, conversation=conversation, tool="write_file", input={"path": 5}
    )

    assert "does not match its schema" in found.fault


def test_a_simulation_for_an_agent_counts_what_was_allowed_to_that_person_only(
    alice: User, bob: User, acme: Organisation, agent: Agent
) -> None:
    save_rule(
        actor=alice,
        level="agent",
        agent=agent,
        organisation=acme,
        rule={"tool": "write_file", "permission": "always_ask"},
    )
    PolicyRule.objects.create(
        scope="agent",
        agent=agent,
        organisation=acme,
        for_user=alice,
        tool="write_file",
        permission="always_allow",
        grant={"level": "agent"},
    )
    given = {"path": "a", "content": ""}

    def verdict(actor: User, person: User) -> str:
        return simulate_call(
            actor=actor,
            agent=agent,
            organisation=acme,
            person=person,
            tool="write_file",
            input=given,
        ).verdict

    assert verdict(alice, alice) == "allow"
    assert verdict(bob, bob) == "ask"
    assert verdict(alice, bob) == "ask"
    with pytest.raises(NotFound):
        verdict(bob, alice)


def test_mallory_simulates_nothing_of_alices(
    mallory: User,
    bob: User,
    acme: Organisation,
    elsewhere: Organisation,
    conversation: Conversation,
    make_agent: MakeAgent,
) -> None:
    private = make_agent("Acme's own", organisation=acme)
    for place in (
        {"conversation": conversation},
        {"agent": private, "organisation": acme},
        {"agent": private, "organisation": elsewhere},
    ):
        with pytest.raises(NotFound):
            simulate_call(actor=mallory, tool="bash", input={}, **place)
    with pytest.raises(NotFound):
        simulate_call(actor=bob, tool="bash", input={}, conversation=conversation)


def test_a_reviewer_simulates_in_a_conversation_that_asked(
    acme: Organisation, conversation: Conversation
) -> None:
    rita = a_reviewer(acme)
    with pytest.raises(NotFound):
        simulate_call(actor=rita, tool="think", input={}, conversation=conversation)

    asks(conversation)

    found = simulate_call(
        actor=rita, tool="think", input={"thought": "x"}, conversation=conversation
    )
    assert found.verdict == "allow"


@pytest.mark.parametrize("wrong", [{"input": []}, {}])
def test_a_simulation_without_a_place_or_an_input_names_what_is_missing(
    alice: User, wrong: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as refused:
        simulate_call(actor=alice, tool="bash", **{"input": {}, **wrong})

    assert refused.value.field == ("input" if wrong else "conversation")
