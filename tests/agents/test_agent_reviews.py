"""A member's agent is offered to her organisation after a review, in the version that was reviewed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.auth.models import Permission

from accounts.actions.service_accounts import create_service_account
from accounts.models import Membership, Role
from agents.actions.agents import archive_agent, change_agent, create_agent, restore_version
from agents.actions.own import change_own_agent, duplicate_agent, make_own_agent
from agents.actions.reviews import ask_for_review, decide_review, withdraw_review
from agents.models import Agent, AgentReview, AgentVersion
from agents.narrowing import Wishes
from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation
from harness.agentconfig import AgentConfig, ToolRule
from harness.errors import (
    AlreadyDecided,
    Conflict,
    Forbidden,
    Invalid,
    MayNotDecide,
    NotFound,
)
from tests.cast import join, make_user

WISHES = Wishes(instructions="Review.", provider="demo")


@pytest.fixture
def preset(staff):
    config = AgentConfig(provider="demo")
    return create_agent(actor=staff, organisation=None, name="Work", description="", config=config)


@pytest.fixture
def own(bob, acme, preset):
    return make_own_agent(
        actor=bob, organisation=acme, base=preset, name="Reviewer", description="", wishes=WISHES
    )


@pytest.fixture
def review(bob, own):
    return ask_for_review(actor=bob, agent=own, note="For all who review.")


def change(actor, agent, **values):
    given = {"name": agent.name, "description": agent.description, **values}
    return change_own_agent(actor=actor, agent=agent, **given)


def offered_to(person, agent):
    seen = AgentVersion.objects.visible_to(person).filter(agent=agent)
    return sorted(seen.values_list("number", flat=True))


def test_what_was_approved_is_offered_to_the_organisation_and_nothing_else(
    alice, bob, mallory, acme, own, review, environment
):
    decide_review(actor=alice, review=review, approve=True)
    shared = Agent.objects.get(pk=own.pk)
    change(bob, shared, wishes=replace(WISHES, instructions="Not seen yet."))
    shared.refresh_from_db()

    assert (shared.private, shared.current.number, shared.newest.number) == (False, 1, 2)
    assert (offered_to(alice, shared), offered_to(bob, shared)) == ([1], [1, 2])
    assert offered_to(mallory, shared) == []
    begun = create_conversation(
        actor=alice, organisation=acme, agent=shared, environment=environment
    )
    assert begun.agent_version.number == 1
    with pytest.raises(Invalid):
        create_conversation(
            actor=alice, organisation=acme, agent=shared, environment=environment, version=2
        )
    tried = create_conversation(
        actor=bob, organisation=acme, agent=shared, environment=environment, version=2
    )
    assert tried.agent_version.config.instructions == "Not seen yet."


def test_who_asked_does_not_decide_where_another_can(alice, bob, acme, own, review):
    Membership.objects.filter(user=bob).update(role=Role.ADMIN)

    with pytest.raises(MayNotDecide, match="yourself"):
        decide_review(actor=bob, review=review, approve=True)
    assert Agent.objects.get(pk=own.pk).private


def test_who_is_alone_decides_herself(alice, acme, preset):
    own = make_own_agent(
        actor=alice, organisation=acme, base=preset, name="Mine", description="", wishes=WISHES
    )
    review = ask_for_review(actor=alice, agent=own)
    carol = make_user("carol", is_active=False)
    join(carol, acme, Role.OWNER)

    decide_review(actor=alice, review=review, approve=True)

    assert not Agent.objects.get(pk=own.pk).private


def test_a_member_decides_nothing_and_a_service_account_neither(alice, bob, acme, review):
    carol = make_user("carol")
    join(carol, acme)
    service = create_service_account(actor=alice, organisation=acme, name="Robot")
    Membership.objects.filter(user=service).update(role=Role.ADMIN)

    with pytest.raises(NotFound):
        decide_review(actor=carol, review=review, approve=True)
    with pytest.raises(Forbidden):
        decide_review(actor=bob, review=review, approve=True)
    with pytest.raises(MayNotDecide):
        decide_review(actor=service, review=review, approve=True)


def test_mallory_sees_no_review_and_asks_for_none(mallory, elsewhere, own, review):
    assert not AgentReview.objects.visible_to(mallory).exists()
    for attempt in (
        lambda: ask_for_review(actor=mallory, agent=own),
        lambda: withdraw_review(actor=mallory, review=review),
        lambda: decide_review(actor=mallory, review=review, approve=True),
    ):
        with pytest.raises(NotFound):
            attempt()


def test_bob_may_use_what_is_shared_but_not_change_it(alice, bob, acme, preset, environment):
    hers = make_own_agent(
        actor=alice, organisation=acme, base=preset, name="Hers", description="", wishes=WISHES
    )
    decide_review(actor=alice, review=ask_for_review(actor=alice, agent=hers), approve=True)

    for attempt in (
        lambda: change(bob, hers, wishes=WISHES),
        lambda: ask_for_review(actor=bob, agent=hers),
        lambda: archive_agent(actor=bob, agent=hers),
        lambda: change_agent(actor=bob, agent=hers, name="X", description="", config=AgentConfig()),
        lambda: restore_version(actor=bob, agent=hers, number=1),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert create_conversation(actor=bob, organisation=acme, agent=hers, environment=environment)
    assert duplicate_agent(actor=bob, organisation=acme, agent=hers).owner == bob


def test_who_manages_archives_what_is_shared_but_gives_it_no_version(alice, own, review):
    decide_review(actor=alice, review=review, approve=True)

    with pytest.raises(Forbidden):
        change_agent(actor=alice, agent=own, name="X", description="", config=AgentConfig())
    assert archive_agent(actor=alice, agent=own).archived_at is not None


def test_where_its_owner_is_gone_the_managers_change_it(alice, bob, acme, own, review):
    decide_review(actor=alice, review=review, approve=True)
    Membership.objects.filter(user=bob, organisation=acme).delete()

    changed = change_agent(
        actor=alice, agent=own, name="Ours", description="", config=AgentConfig(provider="demo")
    )

    assert (changed.current.number, changed.current.draft) == (2, False)


def test_staff_decide_for_any_organisation(review, own):
    helper = make_user("helper", is_staff=True)
    with pytest.raises(NotFound):
        decide_review(actor=helper, review=review, approve=True)
    helper.user_permissions.set(Permission.objects.filter(codename="change_agent"))

    helper = type(helper).objects.get(pk=helper.pk)
    decide_review(actor=helper, review=review, approve=True)

    assert not Agent.objects.get(pk=own.pk).private


def test_a_refusal_says_why_and_shares_nothing(alice, bob, own, review):
    with pytest.raises(Invalid) as refusal:
        decide_review(actor=alice, review=review, approve=False)
    assert refusal.value.field == "reason"
    decided = decide_review(actor=alice, review=review, approve=False, reason="Too blunt.")

    assert (decided.state, decided.reason, decided.decided_by) == ("refused", "Too blunt.", alice)
    assert Agent.objects.get(pk=own.pk).private
    with pytest.raises(AlreadyDecided):
        decide_review(actor=alice, review=review, approve=True)
    told = AuditEntry.objects.get(action="review_refused")
    assert (told.actor, told.details["reason"], told.details["agent"]) == (
        alice,
        "Too blunt.",
        own.uid,
    )


def test_asking_again_takes_the_place_of_the_earlier_question(bob, alice, own, review):
    change(bob, own, wishes=replace(WISHES, instructions="Better."))
    again = ask_for_review(actor=bob, agent=own)

    review.refresh_from_db()
    assert (review.state, again.version.number) == ("withdrawn", 2)
    with pytest.raises(AlreadyDecided):
        decide_review(actor=alice, review=review, approve=True)
    assert withdraw_review(actor=bob, review=again).state == "withdrawn"


def test_who_did_not_ask_withdraws_nothing(alice, review):
    with pytest.raises(Forbidden):
        withdraw_review(actor=alice, review=review)


def test_there_is_nothing_to_ask_for_twice(alice, bob, own, review):
    decide_review(actor=alice, review=review, approve=True)
    with pytest.raises(Conflict):
        ask_for_review(actor=bob, agent=own)
    archive_agent(actor=bob, agent=own)
    with pytest.raises(Conflict):
        ask_for_review(actor=bob, agent=own)


def test_a_name_that_nobody_reviewed_is_not_approved(alice, bob, own, review):
    change(bob, own, wishes=WISHES, name="Payroll (official)")

    with pytest.raises(Conflict):
        decide_review(actor=alice, review=review, approve=True)
    assert Agent.objects.get(pk=own.pk).private


def test_others_know_a_shared_agent_by_its_name(alice, bob, own, review):
    decide_review(actor=alice, review=review, approve=True)

    own.refresh_from_db()
    with pytest.raises(Invalid) as refusal:
        change(bob, own, wishes=WISHES, name="Payroll (official)")
    assert refusal.value.field == "name"


def test_what_its_base_no_longer_allows_is_not_approved(alice, staff, own, review, preset):
    stricter = AgentConfig(
        provider="demo", tools=(ToolRule(tool="*"), ToolRule(tool="bash", permission="always_deny"))
    )
    change_agent(actor=staff, agent=preset, name="Work", description="", config=stricter)

    with pytest.raises(Conflict, match="allows less"):
        decide_review(actor=alice, review=review, approve=True)
    archive_agent(actor=staff, agent=own)
    with pytest.raises(Conflict, match="archived"):
        decide_review(actor=alice, review=review, approve=True)


def test_each_act_stands_in_the_audit_log(alice, bob, own, review):
    withdraw_review(actor=bob, review=review)
    again = ask_for_review(actor=bob, agent=own)
    decide_review(actor=alice, review=again, approve=True)

    told = AuditEntry.objects.filter(action__startswith="review_").order_by("pk")
    assert [(entry.action, entry.actor) for entry in told] == [
        ("review_asked", bob),
        ("review_withdrawn", bob),
        ("review_asked", bob),
        ("review_approved", alice),
    ]
