"""Deciding what waits: who may, how often, on which input, and what comes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Membership, Organisation, Role, User
from agents.models import Environment
from approvals.actions.approvals import (
    assign_approval,
    decide_approval,
    expire_approvals,
    note_seen,
)
from approvals.models import Approval, ApprovalDecision, PolicyRule
from audit.models import AppendOnly, AuditEntry
from conversations.actions.conversations import create_conversation
from conversations.actions.deciding import decide_call
from conversations.actions.messages import stop
from conversations.log import append
from conversations.models import Conversation, Event
from harness.errors import (
    AlreadyDecided,
    Conflict,
    Expired,
    Forbidden,
    InputChanged,
    Invalid,
    MayNotDecide,
    NotFound,
    NotWaiting,
    TooLarge,
)
from harness.events import ApprovalRequested, EndTurn, SessionStatusIdle, UserToolConfirmation
from harness.history import Entry
from harness.patterns import input_hash
from harness.rules import AskTerms
from tests.approvals.asking import WRITE, a_reviewer, asks
from tests.cast import join, make_user
from tests.conversations.conftest import MakeAgent
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is carried out: what a run does with an answer is tested with runs."""
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return create_conversation(
        actor=alice,
        organisation=acme,
        agent=make_agent(provider="demo"),
        environment=environment,
    )


def decide(who: User, approval: Approval, verdict: str = "approve", **more: Any) -> Approval:
    more.setdefault("input_hash", approval.effective_sha256)
    more.setdefault("seen_round", approval.round)
    return decide_approval(actor=who, approval=approval, verdict=verdict, **more)  # type: ignore[arg-type]


def confirmations(conversation: Conversation) -> list[UserToolConfirmation]:
    rows = Event.objects.filter(conversation=conversation, type="user.tool_confirmation")
    return [
        value
        for row in rows.order_by("seq")
        if isinstance(value := row.value, UserToolConfirmation)
    ]


def trail(approval: Approval) -> list[str]:
    rows = AuditEntry.objects.filter(approval_uid=approval.uid)
    return list(rows.order_by("id").values_list("action", flat=True))


# --- what is kept ---------------------------------------------------------------------------------


def test_a_call_that_asks_is_a_row_with_its_exact_input_and_why_it_waits(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    approval = asks(conversation, risk="high", expires_seconds=60, two_people=True)

    assert approval.state == "pending"
    assert approval.organisation == acme
    assert approval.root == conversation
    assert approval.requested_by == alice
    assert approval.input == WRITE
    assert approval.input_sha256 == input_hash(WRITE)
    assert approval.reason == "A rule of this agent asks before write_file."
    assert (approval.risk, approval.needed, approval.effect) == ("high", 2, "workspace")
    assert approval.expires_at is not None
    assert approval.touches["kind"] == "diff"
    assert "+one" in approval.touches["diff"]
    assert approval.touches["created"] is True
    assert trail(approval) == ["asked"]


def test_an_allowed_call_is_confirmed_in_the_log_bound_to_its_input(
    alice: User, conversation: Conversation
) -> None:
    approval = decide(alice, asks(conversation))

    assert approval.state == "approved"
    assert approval.closed_by == alice
    (answer,) = confirmations(conversation)
    assert answer.result == "allow"
    assert answer.input_sha256 == input_hash(WRITE)
    assert answer.edited_input is None
    assert trail(approval) == ["asked", "allowed"]


def test_a_denial_carries_its_reason(alice: User, conversation: Conversation) -> None:
    approval = decide(alice, asks(conversation), "deny", reason=" Not here. ")

    assert approval.state == "denied"
    assert confirmations(conversation)[0].deny_message == "Not here."
    assert AuditEntry.objects.get(action="denied").reason == "Not here."


def test_not_now_leaves_it_waiting_and_is_kept(alice: User, conversation: Conversation) -> None:
    approval = decide(alice, asks(conversation), "not_now", reason="After lunch.")

    assert approval.state == "pending"
    assert confirmations(conversation) == []
    assert approval.decisions.get().verdict == "not_now"
    assert trail(approval) == ["asked", "put_aside"]
    assert decide(alice, approval).state == "approved"


# --- answers that change nothing ------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["approve", "deny", "not_now"])
def test_a_second_answer_changes_nothing_and_says_so(
    alice: User, acme: Organisation, conversation: Conversation, verdict: str
) -> None:
    approval = asks(conversation)
    decide(alice, approval)

    for who in (alice, a_reviewer(acme)):
        with pytest.raises(AlreadyDecided) as refused:
            decide(who, approval, verdict)
        assert refused.value.code == "already_decided"
    assert len(confirmations(conversation)) == 1
    assert ApprovalDecision.objects.count() == 1


def test_the_same_key_twice_is_one_decision(alice: User, conversation: Conversation) -> None:
    approval = asks(conversation)

    first = decide(alice, approval, key="k1")
    second = decide(alice, approval, key="k1")

    assert first.state == second.state == "approved"
    assert len(confirmations(conversation)) == 1
    with pytest.raises(Conflict):
        decide(alice, approval, "deny", key="k1")


def test_an_answer_about_another_input_changes_nothing(
    alice: User, conversation: Conversation
) -> None:
    approval = asks(conversation)

    with pytest.raises(InputChanged) as refused:
        decide(alice, approval, input_hash=input_hash({"path": "b.txt"}))

    assert refused.value.code == "input_changed"
    approval.refresh_from_db()
    assert approval.state == "pending"
    assert confirmations(conversation) == []


@pytest.mark.parametrize("verdict", ["", "allow", "APPROVE", "auto_approve", "yes"])
def test_an_unknown_verdict_lets_nothing_run(
    alice: User, conversation: Conversation, verdict: str
) -> None:
    """Unknown means no."""
    approval = asks(conversation)

    with pytest.raises(Invalid) as refused:
        decide(alice, approval, verdict)

    assert refused.value.field == "verdict"
    assert confirmations(conversation) == []


def test_what_was_given_up_no_longer_waits(alice: User, conversation: Conversation) -> None:
    approval = asks(conversation)
    append(conversation.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])

    with pytest.raises(NotWaiting) as refused:
        decide(alice, approval)

    assert refused.value.code == "not_waiting"
    approval.refresh_from_db()
    assert approval.state == "cancelled"
    assert trail(approval) == ["asked", "cancelled"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"reason": "x" * 4_001}, "reason"),
        ({"key": ""}, "key"),
        ({"key": "k" * 101}, "key"),
        ({"scope": "forever"}, "scope"),
        ({"edited_input": {"path": float("nan")}}, "edited_input"),
        ({"edited_input": {"content": "x" * 1_000_001}}, "edited_input"),
    ],
)
def test_a_broken_answer_names_its_field_and_loses_nothing(
    alice: User, conversation: Conversation, more: dict[str, Any], field: str
) -> None:
    approval = asks(conversation)

    with pytest.raises(Invalid) as refused:
        decide(alice, approval, **more)

    assert refused.value.field == field
    assert isinstance(refused.value, TooLarge) or "long" not in refused.value.message
    assert confirmations(conversation) == []


def test_a_denial_takes_neither_scope_nor_edit(alice: User, conversation: Conversation) -> None:
    approval = asks(conversation)

    for more in ({"scope": "always"}, {"edited_input": WRITE}):
        with pytest.raises(Invalid):
            decide(alice, approval, "deny", **more)


# --- who may --------------------------------------------------------------------------------------


def test_mallory_and_a_colleague_find_no_such_approval(
    alice: User, bob: User, mallory: User, elsewhere: Organisation, conversation: Conversation
) -> None:
    """Being an owner elsewhere is nothing here."""
    approval = asks(conversation)
    attempts: list[Callable[[User], Any]] = [
        lambda who: decide(who, approval),
        lambda who: decide(who, approval, "deny"),
        lambda who: decide(who, approval, "not_now"),
        lambda who: assign_approval(actor=who, approval=approval, role="reviewer"),
        lambda who: note_seen(actor=who, approval=approval),
    ]
    for who in (mallory, bob):
        for attempt in attempts:
            with pytest.raises(NotFound):
                attempt(who)
        assert not Approval.objects.visible_to(who).exists()
        assert not Approval.objects.decidable_by(who).exists()
        assert not AuditEntry.objects.visible_to(who).exclude(actor=who).exists()
    assert confirmations(conversation) == []
    assert trail(approval) == ["asked"]


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.ADMIN, Role.OWNER])
def test_who_reviews_the_organisation_decides_without_being_in_the_conversation(
    acme: Organisation, conversation: Conversation, role: Role
) -> None:
    rita = make_user("rita")
    join(rita, acme, role)
    approval = asks(conversation)

    assert list(Approval.objects.decidable_by(rita)) == [approval]
    assert decide(rita, approval).closed_by == rita


def test_staff_decide_with_the_permission_and_not_without(
    staff: User, conversation: Conversation
) -> None:
    approval = asks(conversation)
    helper = make_user("helper", is_staff=True)

    with pytest.raises(NotFound):
        decide(helper, approval)
    assert decide(staff, approval).closed_by == staff


def test_who_left_the_organisation_decides_nothing_any_more(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    rita = a_reviewer(acme)
    approval = asks(conversation)
    Membership.objects.filter(user=rita).delete()

    with pytest.raises(NotFound):
        decide(rita, approval)


def test_the_requester_may_not_decide_where_the_rule_says_so(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    approval = asks(conversation, requester_may_not_decide=True)

    for verdict in ("approve", "deny"):
        with pytest.raises(MayNotDecide) as refused:
            decide(alice, approval, verdict)
        assert refused.value.code == "may_not_decide"
    assert not Approval.objects.decidable_by(alice).exists()
    assert decide(a_reviewer(acme), approval).state == "approved"


def test_only_reviewers_decide_where_the_rule_says_so(
    acme: Organisation, bob: User, environment: Environment, make_agent: MakeAgent
) -> None:
    conversation = create_conversation(
        actor=bob, organisation=acme, agent=make_agent("Bob's"), environment=environment
    )
    approval = asks(conversation, reviewers_only=True)

    assert approval.assignee_role == "reviewer"
    with pytest.raises(MayNotDecide):
        decide(bob, approval)
    assert not Approval.objects.decidable_by(bob).exists()
    assert decide(a_reviewer(acme), approval).state == "approved"


def test_two_different_people_must_agree(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    rita = a_reviewer(acme)
    approval = decide(alice, asks(conversation, two_people=True))

    assert approval.state == "pending"
    assert confirmations(conversation) == []
    with pytest.raises(AlreadyDecided):
        decide(alice, approval)
    assert not Approval.objects.decidable_by(alice).exists()
    assert decide(rita, approval).state == "approved"
    assert len(confirmations(conversation)) == 1
    voted = Event.objects.get(type="x.approval_voted").payload
    assert (voted["allowed"], voted["needed"]) == (1, 2)


def test_one_denial_is_enough_where_two_must_agree(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    approval = decide(alice, asks(conversation, two_people=True))

    assert decide(a_reviewer(acme), approval, "deny").state == "denied"


def test_two_people_agree_on_one_input_and_not_on_two(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    rita, otto = a_reviewer(acme), a_reviewer(acme, "otto")
    asked = asks(conversation, two_people=True)
    decide(alice, asked)
    edited = {**WRITE, "content": "two\n"}

    proposed = decide(rita, asked, edited_input=edited)

    assert proposed.state == "pending"
    with pytest.raises(InputChanged):
        decide(otto, asked, input_hash=asked.input_sha256)
    assert decide(otto, proposed).state == "approved"
    assert confirmations(conversation)[0].edited_input == edited


def test_what_another_proposed_is_not_agreed_to_where_only_the_agents_input_is_shown(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    asked = asks(conversation, two_people=True)
    proposed = decide(a_reviewer(acme), asked, edited_input={**WRITE, "content": "two\n"})

    with pytest.raises(InputChanged):
        decide_call(actor=alice, conversation=conversation, call_uid=asked.call_uid, allow=True)
    assert confirmations(conversation) == []
    assert decide(alice, proposed).state == "approved"


def test_what_another_proposed_is_denied_from_where_only_the_agents_input_is_shown(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    asked = asks(conversation, two_people=True)
    decide(a_reviewer(acme), asked, edited_input={**WRITE, "content": "two\n"})

    decide_call(actor=alice, conversation=conversation, call_uid=asked.call_uid, allow=False)

    assert [answer.result for answer in confirmations(conversation)] == ["deny"]


# --- edited ---------------------------------------------------------------------------------------


def test_an_edited_input_is_what_is_allowed(alice: User, conversation: Conversation) -> None:
    edited = {"path": "b.txt", "content": "two\n"}

    approval = decide(alice, asks(conversation), edited_input=edited)

    (answer,) = confirmations(conversation)
    assert answer.edited_input == edited
    assert answer.input_sha256 == input_hash(edited)
    assert approval.was_edited
    assert approval.input == WRITE
    assert AuditEntry.objects.get(action="allowed").details["edited_input"] == edited


@pytest.mark.parametrize(
    "edited", [{}, {"path": "b.txt"}, {**WRITE, "mode": "x"}, {**WRITE, "path": 5}]
)
def test_an_edit_that_breaks_the_schema_is_refused_and_the_call_still_waits(
    alice: User, conversation: Conversation, edited: dict[str, Any]
) -> None:
    approval = asks(conversation)

    with pytest.raises(Invalid) as refused:
        decide(alice, approval, edited_input=edited)

    assert refused.value.field == "edited_input"
    approval.refresh_from_db()
    assert approval.state == "pending"
    assert ApprovalDecision.objects.count() == 0


def test_an_edit_is_no_way_round_a_rule_that_denies(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    PolicyRule.objects.create(
        scope="organisation",
        organisation=acme,
        tool="write_file",
        when={"argument": "path", "path": "secrets/**"},
        permission="always_deny",
    )

    with pytest.raises(Invalid, match="denies write_file"):
        decide(alice, asks(conversation), edited_input={"path": "secrets/a", "content": ""})


def test_an_edit_is_no_way_round_a_rule_that_wants_two_people(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    PolicyRule.objects.create(
        scope="organisation",
        organisation=acme,
        tool="write_file",
        when={"argument": "path", "path": "live/**"},
        permission="always_ask",
        options={"two_people": True},
    )

    with pytest.raises(Invalid, match="asks for more"):
        decide(alice, asks(conversation), edited_input={"path": "live/a", "content": ""})


# --- time -----------------------------------------------------------------------------------------


def overdue(approval: Approval) -> Approval:
    Approval.objects.filter(pk=approval.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    approval.refresh_from_db()
    return approval


def test_without_an_expiry_it_waits_for_ever(conversation: Conversation) -> None:
    approval = asks(conversation)
    Approval.objects.update(asked_at=timezone.now() - timedelta(days=4_000))

    assert expire_approvals() == 0
    assert list(Approval.objects.waiting()) == [approval]


def test_when_time_runs_out_the_call_is_denied_once(conversation: Conversation) -> None:
    approval = overdue(asks(conversation, expires_seconds=60))

    assert not Approval.objects.waiting().exists()
    assert expire_approvals() == 1
    assert expire_approvals() == 0
    approval.refresh_from_db()
    assert approval.state == "expired"
    (answer,) = confirmations(conversation)
    assert answer.result == "deny"
    assert trail(approval) == ["asked", "expired"]


@pytest.mark.parametrize("swept", [True, False])
def test_an_answer_that_comes_too_late_changes_nothing_and_says_so(
    alice: User, conversation: Conversation, swept: bool
) -> None:
    """Also when the sweep has not noticed yet."""
    approval = overdue(asks(conversation, expires_seconds=60))
    if swept:
        expire_approvals()

    with pytest.raises(Expired) as refused:
        decide(alice, approval)

    assert refused.value.code == "approval_expired"
    assert [answer.result for answer in confirmations(conversation)] == ["deny"]


# --- for longer than one call ---------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["run", "conversation", "always"])
def test_allowing_for_longer_saves_exactly_the_rule_for_this_call(
    alice: User, conversation: Conversation, scope: str
) -> None:
    approval = decide(alice, asks(conversation), scope=scope)

    saved = PolicyRule.objects.get()
    assert saved.made_from == approval
    assert saved.made_by == alice
    assert saved.tool == "write_file"
    assert saved.when == {"argument": "", "sha256": input_hash(WRITE)}
    assert saved.scope == ("agent" if scope == "always" else scope)
    assert bool(saved.turn_uid) == (scope == "run")
    assert (saved.for_user == alice) == (scope == "always")
    assert AuditEntry.objects.filter(action="rule_saved", rule_uid=saved.uid).count() == 1


def test_once_saves_no_rule(alice: User, conversation: Conversation) -> None:
    decide(alice, asks(conversation))

    assert not PolicyRule.objects.exists()


def test_what_is_asked_every_time_takes_no_wider_scope(
    alice: User, conversation: Conversation
) -> None:
    approval = asks(conversation, may_be_settled=False)

    with pytest.raises(Invalid) as refused:
        decide(alice, approval, scope="always")

    assert refused.value.field == "scope"
    assert not PolicyRule.objects.exists()
    assert approval.decisions.count() == 0


def test_of_two_peoples_scopes_the_narrower_counts(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    asked = asks(conversation, two_people=True)
    decide(alice, asked, scope="always")
    decide(a_reviewer(acme), asked, scope="conversation")

    saved = PolicyRule.objects.get()
    assert saved.scope == "conversation"
    assert saved.grant is not None
    assert saved.grant["two_people"] is True


# --- around it ------------------------------------------------------------------------------------


def test_it_is_handed_to_somebody_who_could_decide(
    alice: User, bob: User, acme: Organisation, conversation: Conversation
) -> None:
    rita = a_reviewer(acme)
    approval = asks(conversation)

    assert assign_approval(actor=alice, approval=approval, user=rita).assignee == rita
    for wrong in ({"user": bob}, {"role": "member"}, {"role": "nobody"}):
        with pytest.raises(Invalid):
            assign_approval(actor=alice, approval=approval, **wrong)
    assert decide(alice, approval).state == "approved"


def test_that_somebody_saw_it_is_kept_once(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    rita = a_reviewer(acme)
    approval = asks(conversation)

    note_seen(actor=rita, approval=approval)
    note_seen(actor=rita, approval=approval)
    note_seen(actor=alice, approval=approval)

    assert trail(approval) == ["asked", "seen", "seen"]


def test_the_audit_log_is_only_added_to(alice: User, conversation: Conversation) -> None:
    asks(conversation)
    entry = AuditEntry.objects.get(action="asked")

    entry.reason = "Something else."
    for attempt in (
        entry.save,
        entry.delete,
        lambda: AuditEntry.objects.update(reason="x"),
        lambda: AuditEntry.objects.all().delete(),
        lambda: AuditEntry.objects.bulk_update([entry], ["reason"]),
    ):
        with pytest.raises(AppendOnly):
            attempt()


def test_the_audit_log_outlives_the_conversation(alice: User, conversation: Conversation) -> None:
    approval = decide(alice, asks(conversation))
    uid = conversation.uid

    conversation.delete()

    assert trail(approval) == ["asked", "allowed"]
    kept = AuditEntry.objects.exclude(approval_uid="")
    assert set(kept.values_list("conversation_uid", flat=True)) == {uid}


def test_a_childs_call_stands_in_the_same_queue_under_the_conversation_people_began(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    child = Conversation.objects.create(
        organisation=acme,
        owner=alice,
        parent=conversation,
        agent_version=conversation.agent_version,
        environment=conversation.environment,
        stored_features=conversation.stored_features,
    )
    approval = asks(child)

    assert approval.root == conversation
    assert list(Approval.objects.decidable_by(a_reviewer(acme))) == [approval]
    assert decide(alice, approval).state == "approved"
    assert len(confirmations(child)) == 1
    assert confirmations(conversation) == []


def test_stopping_makes_the_question_needless(alice: User, conversation: Conversation) -> None:
    approval = asks(conversation)

    stop(actor=alice, conversation=conversation)
    append(
        conversation.pk,
        [Entry.of(SessionStatusIdle(stop_reason=EndTurn(), interrupted=True))],
    )

    approval.refresh_from_db()
    assert approval.state == "cancelled"


def test_nobody_hands_on_what_waits_no_more(alice: User, conversation: Conversation) -> None:
    approval = decide(alice, asks(conversation))

    with pytest.raises((Conflict, Forbidden)):
        assign_approval(actor=alice, approval=approval, role="reviewer")


def test_of_answers_at_the_same_moment_exactly_one_counts(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    """The first wins, whatever the doors."""
    approval = asks(conversation)
    people = [alice, *(a_reviewer(acme, f"rita{number}") for number in range(4))]
    begin = threading.Barrier(len(people))
    outcomes: list[str] = []

    def go(who: User, verdict: str) -> None:
        begin.wait(PATIENCE)
        try:
            outcomes.append(decide(who, approval, verdict).state)
        except AlreadyDecided as late:
            outcomes.append(late.code)
        finally:
            connection.close()

    threads = [
        threading.Thread(target=go, args=(who, "approve" if number % 2 else "deny"))
        for number, who in enumerate(people)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert sorted(outcomes)[:4] == ["already_decided"] * 4
    approval.refresh_from_db()
    assert outcomes.count(approval.state) == 1
    assert len(confirmations(conversation)) == 1


def test_consent_to_other_terms_counts_no_more(
    alice: User, acme: Organisation, conversation: Conversation
) -> None:
    asked = asks(conversation, two_people=True)
    decide(alice, asked)
    stricter = ApprovalRequested(
        tool_use_id=asked.call_uid,
        reason="A rule of this organisation asks before write_file.",
        terms=AskTerms(level="organisation", two_people=True, requester_may_not_decide=True),
    )
    append(conversation.pk, [Entry.of(stricter)])
    asked.refresh_from_db()

    assert decide(a_reviewer(acme), asked).state == "pending"
    with pytest.raises(MayNotDecide):
        decide(alice, asked)
    assert decide(a_reviewer(acme, "otto"), asked).state == "approved"
