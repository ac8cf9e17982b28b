"""Consents of accounts that changed before the next one: who is gone agrees to nothing, and nobody
counts beside an account that she could speak through, then or by now."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.actions.members import change_role, remove_member
from accounts.actions.service_accounts import create_service_account, remove_service_account
from accounts.models import Membership, Organisation, Role, User
from approvals.actions.approvals import log_consents_anew
from approvals.models import Approval, PolicyRule
from approvals.policyrules import held_for
from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation
from conversations.models import Conversation, Event
from harness.errors import AlreadyDecided
from tests.approvals.asking import a_reviewer, asks
from tests.approvals.test_deciding_persons import allow, allowed
from tests.cast import ClientOf, join, make_user
from tests.conversations.conftest import Converse

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)


@pytest.fixture
def robot(alice: User, acme: Organisation) -> User:
    """A service account that alice made, with a role that reviews."""
    return create_service_account(actor=alice, organisation=acme, name="Robot", role=Role.REVIEWER)


def removed(robot: User, alice: User, acme: Organisation) -> None:
    remove_service_account(actor=alice, organisation=acme, account=robot)


def closed(robot: User, _alice: User, _acme: Organisation) -> None:
    User.objects.filter(pk=robot.pk).update(is_active=False)


def demoted(robot: User, _alice: User, acme: Organisation) -> None:
    Membership.objects.filter(user=robot, organisation=acme).update(role=Role.MEMBER)


def deleted(robot: User, _alice: User, _acme: Organisation) -> None:
    robot.delete()


Ends = Callable[[User, User, Organisation], None]
ENDS = (removed, closed, demoted, deleted)


def told(approval: Approval) -> tuple[int, int]:
    """How many have allowed it of how many, as the card in the conversation says by the log."""
    row = Event.objects.filter(subject=approval.call_uid, type="x.approval_voted").latest("seq")
    return row.payload["allowed"], row.payload["needed"]


@pytest.fixture
def bea(acme: Organisation) -> User:
    """Another owner."""
    bea = make_user("bea")
    join(bea, acme, Role.OWNER)
    return bea


@pytest.fixture
def beas_robot(bea: User, acme: Organisation) -> User:
    """Alice is behind it because she manages the organisation, and for nothing else."""
    return create_service_account(actor=bea, organisation=acme, name="Bea's", role=Role.REVIEWER)


@pytest.mark.parametrize("end", ENDS)
def test_an_account_of_hers_that_is_gone_is_no_second_person_beside_who_managed_it(
    end: Ends, alice: User, acme: Organisation, beas_robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True, service_accounts=(beas_robot.uid,))
    allow(beas_robot, asked)
    end(beas_robot, alice, acme)

    allow(alice, asked)

    assert not allowed(asked)
    assert told(asked) == (1, 2)
    allow(a_reviewer(acme), asked)
    assert allowed(asked)


@pytest.mark.parametrize("end", ENDS)
def test_what_an_account_allowed_that_is_gone_counts_beside_nobody(
    end: Ends, alice: User, acme: Organisation, robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True, service_accounts=(robot.uid,))
    allow(robot, asked)
    end(robot, alice, acme)

    allow(a_reviewer(acme), asked)

    assert not allowed(asked)
    assert told(asked) == (1, 2)


def test_who_managed_an_account_when_it_answered_is_no_second_person_later(
    alice: User, bea: User, acme: Organisation, beas_robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True, service_accounts=(beas_robot.uid,))
    allow(beas_robot, asked)
    own = Membership.objects.get(user=alice, organisation=acme)
    change_role(actor=bea, membership=own, role=Role.MEMBER)

    allow(alice, asked)

    assert not allowed(asked)
    allow(a_reviewer(acme), asked)
    (given,) = Event.objects.filter(subject=asked.call_uid, type="user.tool_confirmation")
    assert given.payload["met"] == ["two_people"], "alice, for whom the agent works, was among them"


def test_who_manages_an_account_since_it_answered_is_no_second_person_either(
    alice: User, acme: Organisation, robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True, service_accounts=(robot.uid,))
    rita = a_reviewer(acme)
    allow(robot, asked)
    hers = Membership.objects.get(user=rita, organisation=acme)
    change_role(actor=alice, membership=hers, role=Role.ADMIN)

    allow(rita, asked)

    assert not allowed(asked)


def test_a_condition_is_not_met_by_an_account_that_the_requester_managed_when_it_answered(
    alice: User, bea: User, acme: Organisation, beas_robot: User, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True, service_accounts=(beas_robot.uid,))
    allow(beas_robot, asked)
    own = Membership.objects.get(user=alice, organisation=acme)
    change_role(actor=bea, membership=own, role=Role.MEMBER)

    allow(a_reviewer(acme), asked)

    (given,) = Event.objects.filter(subject=asked.call_uid, type="user.tool_confirmation")
    assert "requester_may_not_decide" not in given.payload["met"]


def leaves(rita: User, alice: User, acme: Organisation) -> None:
    remove_member(actor=alice, membership=Membership.objects.get(user=rita, organisation=acme))


@pytest.mark.parametrize("end", [leaves, closed, demoted, deleted])
def test_a_reviewer_who_may_answer_no_more_is_not_counted_and_a_third_is_needed(
    end: Ends, alice: User, acme: Organisation, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True)
    rita = a_reviewer(acme)
    allow(rita, asked)
    end(rita, alice, acme)

    allow(alice, asked)

    assert not allowed(asked)
    assert told(asked) == (1, 2)
    allow(a_reviewer(acme, "otto"), asked)
    assert allowed(asked)


def test_the_scope_of_who_may_answer_no_more_narrows_nothing(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True)
    rita = a_reviewer(acme)
    allow(rita, asked)
    closed(rita, alice, acme)

    allow(alice, asked, scope="conversation")
    allow(a_reviewer(acme, "otto"), asked, scope="conversation")

    (given,) = Event.objects.filter(subject=asked.call_uid, type="user.tool_confirmation")
    assert given.payload["scope"] == "conversation"


def test_every_place_shows_how_many_agree_as_it_is_counted(
    alice: User,
    acme: Organisation,
    converse: Converse,
    client_of: ClientOf,
) -> None:
    conversation = converse()[0]
    asked = asks(conversation, two_people=True)
    rita = a_reviewer(acme)
    allow(rita, asked)
    client = client_of(alice)
    pages = ("/approvals/", f"/approvals/{asked.uid}/")

    def shown() -> int:
        (row,) = client.get("/api/approvals").json()
        assert row["needed"] == 2
        for page in pages:
            text = client.get(page).content.decode()
            assert ("1 has allowed it" in text) == (row["allowed"] == 1)
            assert ("counts no more" in text) == (row["allowed"] == 0)
        card = client.get(conversation.get_absolute_url()).content.decode()
        assert f"{row['allowed']} of 2 people have allowed it." in card
        return int(row["allowed"])

    assert log_consents_anew() == 0
    assert shown() == 1
    closed(rita, alice, acme)
    assert log_consents_anew() == 1
    assert shown() == 0
    assert log_consents_anew() == 0, "it is told once"
    entry = AuditEntry.objects.filter(action="allowed").latest("id")
    assert entry.details["votes"] == 1, "as it was then"


def test_an_answer_of_an_account_that_is_gone_is_not_shown_as_time_that_ran_out(
    alice: User, acme: Organisation, converse: Converse, client_of: ClientOf
) -> None:
    asked = asks(converse()[0], two_people=True)
    rita = a_reviewer(acme)
    allow(rita, asked)
    rita.delete()

    text = client_of(alice).get(f"/approvals/{asked.uid}/").content.decode()

    assert "by an account that is gone" in text
    assert "because time ran out" not in text


def test_who_may_answer_again_allows_it_once_more_where_enough_agree_by_then(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    asked = asks(converse()[0], two_people=True)
    rita = a_reviewer(acme)
    allow(rita, asked)
    closed(rita, alice, acme)
    allow(alice, asked)
    with pytest.raises(AlreadyDecided):
        allow(alice, asked)
    User.objects.filter(pk=rita.pk).update(is_active=True)
    assert not allowed(asked), "nobody has said so since"

    allow(alice, asked)

    assert allowed(asked)
    assert asked.decisions.count() == 2


# --- what two people allowed for longer -----------------------------------------------------------


def held_for_two(conversation: Conversation, rule: PolicyRule) -> bool:
    """Whether the rule settles what asks for two people, in a conversation of alice's with this agent."""
    (grant,) = [one.grant for one in held_for(conversation) if one.uid == rule.uid]
    assert grant is not None
    return grant.two_people


def for_always(alice: User, rita: User, conversation: Conversation) -> PolicyRule:
    asked = asks(conversation, two_people=True)
    allow(rita, asked, scope="always")
    allow(alice, asked, scope="always")
    assert allowed(asked)
    return PolicyRule.objects.get(made_from=asked)


def test_many_permissions_with_conditions_are_read_with_as_many_statements_as_one(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    conversation, people = converse()[0], [a_reviewer(acme, f"rita-{each}") for each in range(5)]

    def statements() -> int:
        held = Conversation.objects.get(pk=conversation.pk)
        with CaptureQueriesContext(connection) as made:
            assert all(one.grant and one.grant.two_people for one in held_for(held))
        return len(made)

    made = []
    for number, rita in enumerate(people):
        asked = asks(conversation, {"path": f"{number}.txt", "content": ""}, two_people=True)
        for who in (rita, alice):
            allow(who, asked, scope="conversation" if number % 2 else "always")
        assert allowed(asked)
        made.append(statements())
    assert len(held_for(conversation)) == len(people)
    assert len(set(made)) == 1, made


@pytest.mark.parametrize("end", [leaves, closed, demoted, deleted])
@pytest.mark.parametrize("approval_is_there", [True, False])
def test_what_two_people_allowed_for_always_counts_while_both_of_them_may_decide(
    end: Ends,
    approval_is_there: bool,
    alice: User,
    acme: Organisation,
    converse: Converse,
) -> None:
    first, rita = converse()[0], a_reviewer(acme)
    rule = for_always(alice, rita, first)
    other = create_conversation(
        actor=alice,
        organisation=acme,
        agent=first.agent_version.agent,
        environment=first.environment,
    )
    if not approval_is_there:
        Approval.objects.all().delete()
    assert held_for_two(other, rule)
    end(rita, alice, acme)
    assert not held_for_two(other, rule)
