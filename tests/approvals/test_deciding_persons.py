"""Decisions count persons: a service account is whoever manages it, at every door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.actions.members import change_role
from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.models import Membership, Organisation, Role, TokenScope, User
from agents.models import Environment
from approvals.actions.approvals import decide_approval
from approvals.actions.rules import save_rule
from approvals.models import Approval, PolicyRule
from approvals.policyrules import held_for
from conversations.actions.conversations import create_conversation
from conversations.models import Conversation, Event
from harness.errors import Declined, Invalid, MayNotDecide
from tests.approvals.asking import a_reviewer, asks
from tests.approvals.test_approval_doors import DOORS
from tests.cast import ClientOf, join, make_user
from tests.conversations.conftest import Converse, MakeAgent

pytestmark = pytest.mark.django_db(transaction=True)

CONDITIONS = ("two_people", "reviewers_only", "requester_may_not_decide")


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)
    monkeypatch.setattr("terminal.local.here.start_recurring", lambda: None)


@pytest.fixture
def robot(alice: User, acme: Organisation) -> User:
    """A service account that alice made, with a role that reviews."""
    return create_service_account(actor=alice, organisation=acme, name="Robot", role=Role.REVIEWER)


@pytest.fixture
def asked_of_robot(
    robot: User, acme: Organisation, make_agent: MakeAgent, environment: Environment
) -> Callable[..., Approval]:
    """A call of the robot's own conversation, on the given terms."""

    def ask(**terms: Any) -> Approval:
        conversation = create_conversation(
            actor=robot, organisation=acme, agent=make_agent(), environment=environment
        )
        return asks(conversation, **terms)

    return ask


def allow(who: User, approval: Approval, **more: Any) -> Approval:
    return decide_approval(
        actor=who,
        approval=approval,
        verdict="approve",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
        **more,
    )


def allowed(approval: Approval) -> bool:
    answers = Event.objects.filter(subject=approval.call_uid, type="user.tool_confirmation")
    return any(row.payload["result"] == "allow" for row in answers)


def test_one_person_and_her_service_account_are_not_two_people(
    alice: User, robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True)
    allow(alice, asked)

    with pytest.raises(MayNotDecide):
        allow(robot, asked)

    assert not allowed(asked)


def test_the_requester_does_not_decide_through_her_service_account(
    robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(robot, asked)

    assert not allowed(asked)


def test_what_she_allowed_in_advance_settles_nothing_once_the_account_that_asks_is_hers_too(
    alice: User, acme: Organisation, asked_of_robot: Callable[..., Approval]
) -> None:
    asked = asked_of_robot(requester_may_not_decide=True)
    other = a_reviewer(acme)
    allow(other, asked, scope="conversation")

    def granted() -> list[bool]:
        held = held_for(Conversation.objects.get(pk=asked.conversation_id))
        return [each.grant.requester_may_not_decide for each in held if each.grant]

    assert granted() == [True]
    membership = Membership.objects.get(organisation=acme, user=other)
    change_role(actor=alice, membership=membership, role=Role.ADMIN)
    assert granted() == [False]


def test_who_manages_the_account_that_asks_is_its_requester(
    alice: User, acme: Organisation, asked_of_robot: Callable[..., Approval]
) -> None:
    asked = asked_of_robot(requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(alice, asked)
    assert asked not in Approval.objects.decidable_by(alice)

    other = a_reviewer(acme)
    assert asked in Approval.objects.decidable_by(other)
    allow(other, asked)
    assert allowed(asked)


def test_who_holds_a_token_of_the_account_is_it_also_when_she_manages_no_more(
    alice: User, acme: Organisation, robot: User, asked_of_robot: Callable[..., Approval]
) -> None:
    carol = make_user("carol")
    membership = join(carol, acme, Role.ADMIN)
    create_token(
        actor=carol,
        organisation=acme,
        name="Hers",
        user=robot,
        scopes=[TokenScope.APPROVALS_DECIDE],
    )
    change_role(actor=alice, membership=membership, role=Role.REVIEWER)
    asked = asked_of_robot(requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(carol, asked)
    assert asked not in Approval.objects.decidable_by(carol)


def test_its_maker_stays_behind_the_account(
    alice: User, acme: Organisation, asked_of_robot: Callable[..., Approval]
) -> None:
    bea = make_user("bea")
    join(bea, acme, Role.OWNER)
    alices = Membership.objects.get(user=alice, organisation=acme)
    change_role(actor=bea, membership=alices, role=Role.REVIEWER)
    asked = asked_of_robot(requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(alice, asked)
    assert asked not in Approval.objects.decidable_by(alice)


def test_a_superuser_can_make_tokens_for_every_account_and_so_is_each_of_them(
    staff: User, asked_of_robot: Callable[..., Approval]
) -> None:
    asked = asked_of_robot(requester_may_not_decide=True)

    with pytest.raises(MayNotDecide):
        allow(staff, asked)
    assert asked not in Approval.objects.decidable_by(staff)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("door", DOORS)
def test_through_no_door_a_service_account_decides_where_people_are_asked_for(
    robot: User,
    asked_of_robot: Callable[..., Approval],
    condition: str,
    door: Callable[..., Any],
) -> None:
    asked = asked_of_robot(**{condition: True})

    try:
        answered = door(robot, asked, True)
    except Declined:
        pass
    else:
        assert answered.status_code in {302, 401, 403, 409}

    assert not allowed(asked)
    asked.refresh_from_db()
    assert asked.is_waiting
    assert not asked.decisions.exists()


def test_where_no_people_are_asked_for_a_program_decides_for_itself(
    robot: User, asked_of_robot: Callable[..., Approval]
) -> None:
    asked = asked_of_robot()

    allow(robot, asked)

    assert allowed(asked)


def test_an_account_that_the_rule_names_stands_for_one_person_beside_one_who_does_not_manage_it(
    acme: Organisation, robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True, service_accounts=(robot.uid,))
    rita = a_reviewer(acme)

    allow(robot, asked)
    assert not allowed(asked)
    allow(rita, asked)

    (given,) = Event.objects.filter(subject=asked.call_uid, type="user.tool_confirmation")
    assert given.payload["service_accounts"] == [robot.uid]
    assert "two_people" in given.payload["met"]


def test_an_account_that_the_rule_names_is_still_no_second_person_beside_who_manages_it(
    alice: User, acme: Organisation, robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True, service_accounts=(robot.uid,))

    allow(robot, asked)
    allow(alice, asked)
    assert not allowed(asked)
    other = create_service_account(actor=alice, organisation=acme, name="Other", role=Role.REVIEWER)
    with pytest.raises(MayNotDecide):
        allow(other, asked)

    allow(a_reviewer(acme), asked)
    assert allowed(asked)


def test_two_named_accounts_of_one_organisation_are_one_person(
    alice: User, acme: Organisation, robot: User, converse: Converse
) -> None:
    other = create_service_account(actor=alice, organisation=acme, name="Other", role=Role.REVIEWER)
    named = (robot.uid, other.uid)
    asked = asks(converse()[0], two_people=True, service_accounts=named)

    allow(robot, asked)
    allow(other, asked)

    assert not allowed(asked)


def test_a_named_account_is_the_requester_all_the_same_where_she_manages_it(
    robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], requester_may_not_decide=True, service_accounts=(robot.uid,))

    with pytest.raises(MayNotDecide):
        allow(robot, asked)


def test_an_account_allows_for_one_call_where_people_are_asked_for(
    robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], reviewers_only=True, service_accounts=(robot.uid,))

    with pytest.raises(Invalid) as refused:
        allow(robot, asked, scope="always")
    assert refused.value.field == "scope"

    allow(robot, asked)
    assert allowed(asked)


def test_a_rule_names_only_service_accounts_of_its_organisation(
    alice: User, acme: Organisation, robot: User, mallory: User, elsewhere: Organisation
) -> None:
    theirs = create_service_account(actor=mallory, organisation=elsewhere, name="Theirs")

    def save(uid: str) -> Any:
        options = {"two_people": True, "service_accounts": [uid]}
        return save_rule(
            actor=alice,
            level="organisation",
            organisation=acme,
            rule={"tool": "bash", "permission": "always_ask", "options": options},
        )

    assert save(robot.uid).value.options.service_accounts == (robot.uid,)
    for uid in (theirs.uid, alice.uid, "user_of_nobody"):
        with pytest.raises(Invalid) as refused:
            save(uid)
        assert refused.value.field == "rule.options.service_accounts"


def test_the_page_of_rules_names_service_accounts(
    alice: User, acme: Organisation, robot: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    assert robot.uid in client.get("/approvals/rules/").content.decode()

    client.post(
        "/approvals/rules/add/",
        {
            "level": "organisation",
            "organisation": acme.uid,
            "permission": "always_ask",
            "tool": "bash",
            "option": "reviewers_only",
            "service_account": robot.uid,
        },
    )

    saved = PolicyRule.objects.get()
    assert saved.value.options.service_accounts == (robot.uid,)
