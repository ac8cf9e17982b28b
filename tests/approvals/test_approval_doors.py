"""The same answers through every door: a denial always works, and nothing unseen is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agui.incoming import ResumeAnswer
from agui.interrupts import inputs_of, open_interrupts
from api.commands import act, open_questions
from api.incoming import ApprovalResponse, PlanApproval
from api.projection import questions
from approvals.actions.approvals import decide_approval
from approvals.models import Approval
from conversations.actions.deciding import decide_call
from conversations.log import append
from conversations.models import Conversation, Event
from harness.agentconfig import ToolRule
from harness.errors import AlreadyDecided, AskedAnew, Conflict, InputChanged, NotFound
from harness.events import (
    ApprovalRequested,
    EndTurn,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
    UserToolConfirmation,
)
from harness.history import Entry
from harness.rules import AskTerms
from programs.actions.sending import send_events
from terminal.local import LocalDoor
from tests.approvals.asking import WRITE, a_reviewer, asks
from tests.conversations.conftest import Converse

pytestmark = pytest.mark.django_db(transaction=True)

EDITED = {**WRITE, "content": "two\n"}
Answer = Callable[[User, Approval, bool], Any]


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)
    monkeypatch.setattr("terminal.local.here.start_recurring", lambda: None)


@pytest.fixture
def proposed(acme: Organisation, converse: Converse) -> Approval:
    """One of two people has allowed the call, with other arguments than the agent's."""
    conversation, _script = converse()
    asked = asks(conversation, two_people=True)
    return decide_approval(
        actor=a_reviewer(acme),
        approval=asked,
        verdict="approve",
        input_hash=asked.effective_sha256,
        seen_round=asked.round,
        edited_input=EDITED,
    )


def words(allow: bool) -> str:
    return "allow" if allow else "deny"


def by_card(who: User, approval: Approval, allow: bool) -> Any:
    call = approval.call_uid
    return decide_call(actor=who, conversation=approval.conversation, call_uid=call, allow=allow)


def by_a_page_of_the_queue_that_is_old(who: User, approval: Approval, allow: bool) -> Any:
    client = Client()
    client.force_login(who)
    seen = {"input_hash": approval.input_sha256, "round": "1"}
    verdict = "approve" if allow else "deny"
    return client.post(f"/approvals/{approval.uid}/decide/", {**seen, "verdict": verdict})


def by_a_frame(who: User, approval: Approval, allow: bool) -> Any:
    rest = Event.objects.filter(
        conversation=approval.conversation, type="session.status_idle"
    ).latest("seq")
    frame = ApprovalResponse(request_id=rest.uid, decision="approve" if allow else "deny")
    return act(frame, actor=who, conversation=approval.conversation)


def by_v1(who: User, approval: Approval, allow: bool) -> Any:
    token = create_token(
        actor=who,
        organisation=Organisation.objects.visible_to(who).get(),
        name="Tests",
        scopes=[TokenScope.CONVERSATIONS_WRITE, TokenScope.APPROVALS_DECIDE],
    )
    event = {
        "type": "user.tool_confirmation",
        "tool_use_id": approval.call_uid,
        "result": words(allow),
    }
    return Client(headers={"x-api-key": token.secret}).post(
        f"/v1/sessions/{approval.conversation.uid}/events",
        {"events": [event]},
        "application/json",
    )


def by_agui(who: User, approval: Approval, allow: bool) -> Any:
    held = approval.conversation
    answer = ResumeAnswer(
        interrupt_id=approval.call_uid, status="resolved", payload={"approved": allow}
    )
    inputs = inputs_of(held, [answer], open_interrupts(held))
    return send_events(actor=who, conversation=held, events=inputs)


def by_command(who: User, approval: Approval, allow: bool) -> Any:
    LocalDoor(who, approval.organisation).decide(
        approval.conversation.uid, approval.call_uid, allow=allow
    )


DOORS = [
    by_card,
    by_a_page_of_the_queue_that_is_old,
    by_a_frame,
    by_v1,
    by_agui,
    by_command,
]


def confirmations(approval: Approval) -> list[UserToolConfirmation]:
    rows = Event.objects.filter(subject=approval.call_uid, type="user.tool_confirmation")
    return [row.value for row in rows if isinstance(row.value, UserToolConfirmation)]


@pytest.mark.parametrize("door", DOORS)
def test_a_call_that_another_changed_is_denied_through_every_door(
    alice: User, proposed: Approval, door: Answer
) -> None:
    door(alice, proposed, False)

    assert [answer.result for answer in confirmations(proposed)] == ["deny"]
    proposed.refresh_from_db()
    assert proposed.state == "denied"


@pytest.mark.parametrize("door", DOORS)
def test_no_door_allows_unseen_what_another_changed(
    alice: User, proposed: Approval, door: Answer
) -> None:
    try:
        answered = door(alice, proposed, True)
    except InputChanged:
        pass
    else:
        assert answered.status_code == 409

    assert confirmations(proposed) == []
    proposed.refresh_from_db()
    assert proposed.state == "pending"


@pytest.mark.parametrize("door", DOORS)
def test_mallory_answers_through_no_door(
    mallory: User, elsewhere: Organisation, proposed: Approval, door: Answer
) -> None:
    try:
        answered = door(mallory, proposed, False)
    except NotFound:
        pass
    else:
        assert answered.status_code == 404

    assert confirmations(proposed) == []


def test_who_says_what_it_shall_run_with_need_not_have_seen_what_another_proposed(
    alice: User, proposed: Approval
) -> None:
    answer = UserToolConfirmation(
        tool_use_id=proposed.call_uid, result="allow", edited_input=EDITED
    )

    send_events(actor=alice, conversation=proposed.conversation, events=[answer])

    (given,) = confirmations(proposed)
    assert given.edited_input == EDITED
    assert "two_people" in given.met


def test_a_frames_request_shows_the_agents_input_when_a_later_voter_put_it_back(
    acme: Organisation, proposed: Approval
) -> None:
    decide_approval(
        actor=a_reviewer(acme, "rolf"),
        approval=proposed,
        verdict="approve",
        input_hash=proposed.effective_sha256,
        seen_round=proposed.round,
        edited_input=WRITE,
    )

    (frame,) = questions(*open_questions(proposed.conversation))

    (tool,) = frame["tools"]
    assert tool["input"] == WRITE


def test_a_frames_request_shows_what_was_put_in_place_of_the_agents_input(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    asked = asks(conversation)
    first, _calls = open_questions(conversation)
    decide_approval(
        actor=alice,
        approval=asked,
        verdict="approve",
        input_hash=asked.effective_sha256,
        seen_round=asked.round,
        edited_input=EDITED,
    )
    asked_anew(conversation, asked)

    second, calls = open_questions(conversation)
    (frame,) = questions(second, calls)

    (tool,) = frame["tools"]
    assert tool["input"] == EDITED
    assert tool["reason"] == "It takes more now."
    with pytest.raises(AskedAnew):
        act(
            ApprovalResponse(request_id=first, decision="approve"),
            actor=alice,
            conversation=conversation,
        )
    act(
        ApprovalResponse(request_id=second, decision="approve"),
        actor=alice,
        conversation=conversation,
    )
    assert [answer.edited_input for answer in confirmations(asked)] == [EDITED, EDITED]


def test_an_answer_to_the_earlier_question_is_not_taken_for_one_to_the_new_one(
    alice: User, converse: Converse
) -> None:
    """A program that sends again what it sent before is told the truth."""
    conversation, _script = converse()
    asked = asks(conversation)
    allow = UserToolConfirmation(tool_use_id=asked.call_uid, result="allow", edited_input=EDITED)
    (first,) = send_events(actor=alice, conversation=conversation, events=[allow])
    (again,) = send_events(actor=alice, conversation=conversation, events=[allow])
    assert again.uid == first.uid
    asked_anew(conversation, asked)

    with pytest.raises(InputChanged):
        as_it_was = allow.model_copy(update={"edited_input": None})
        send_events(actor=alice, conversation=conversation, events=[as_it_was])

    assert len(confirmations(asked)) == 1
    assert asked.is_waiting


def asked_anew(conversation: Conversation, asked: Approval) -> None:
    """As a run asks that found stricter rules."""
    terms = AskTerms(level="organisation", effect="workspace")
    request = ApprovalRequested(
        tool_use_id=asked.call_uid, reason="It takes more now.", terms=terms
    )
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(asked.call_uid,)))
    append(conversation.pk, [Entry.of(event) for event in (SessionStatusRunning(), request, rest)])
    conversation.refresh_from_db()
    asked.refresh_from_db()


def test_an_answer_that_names_no_request_means_only_one_that_its_socket_was_sent(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse()
    asked = asks(conversation)
    request_id, _calls = open_questions(conversation)
    unnamed = ApprovalResponse(decision="approve")
    with pytest.raises(Conflict, match=request_id):
        act(unnamed, actor=alice, conversation=conversation, shown=["sevt_earlier"])
    assert confirmations(asked) == []
    act(unnamed, actor=alice, conversation=conversation, shown=["sevt_earlier", request_id])
    assert [answer.result for answer in confirmations(asked)] == ["allow"]
    conversation.refresh_from_db()
    with pytest.raises(Conflict):
        act(unnamed, actor=alice, conversation=conversation, shown=[request_id])


def test_an_answer_that_names_no_plan_means_only_one_that_its_socket_was_sent(
    alice: User, converse: Converse
) -> None:
    conversation, _script = converse(features={"plan_mode": True})
    asked = asks(conversation, {"plan": "Delete it."}, tool="present_plan")
    request_id, _calls = open_questions(conversation)
    unnamed = PlanApproval(decision="approve")
    with pytest.raises(Conflict, match=request_id):
        act(unnamed, actor=alice, conversation=conversation, shown=["sevt_earlier"])
    assert confirmations(asked) == []
    act(unnamed, actor=alice, conversation=conversation, shown=["sevt_earlier", request_id])
    assert [answer.result for answer in confirmations(asked)] == ["allow"]


@pytest.mark.parametrize("named", [True, False])
def test_a_yes_to_a_plan_that_was_refused_before_changes_nothing(
    alice: User, converse: Converse, named: bool
) -> None:
    conversation, _script = converse(features={"plan_mode": True})
    asked = asks(conversation, {"plan": "Delete it."}, tool="present_plan")
    request_id, _calls = open_questions(conversation)
    no = PlanApproval(decision="reject", feedback="Keep it.", request_id=request_id)
    act(no, actor=alice, conversation=conversation)
    conversation.refresh_from_db()
    yes = PlanApproval(decision="approve", request_id=request_id if named else None)
    with pytest.raises(AlreadyDecided):
        act(yes, actor=alice, conversation=conversation, shown=[request_id])
    conversation.refresh_from_db()
    assert conversation.features.plan_mode
    assert [answer.result for answer in confirmations(asked)] == ["deny"]
    assert conversation.events.filter(type="user.message").count() == 1


def test_of_two_answers_at_once_to_a_plan_that_was_only_said_one_counts(
    alice: User, converse: Converse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conversations.actions.messages.wake", lambda _pk: None)
    conversation, _script = converse(features={"plan_mode": True})
    rest = Entry.of(SessionStatusIdle(stop_reason=EndTurn()))
    append(conversation.pk, [Entry.of(SessionStatusRunning()), rest])
    conversation.refresh_from_db()
    yes = PlanApproval(decision="approve", request_id=rest.uid)
    act(yes, actor=alice, conversation=conversation)
    with pytest.raises(AlreadyDecided):
        act(yes, actor=alice, conversation=conversation)  # as it was read before the other
    assert conversation.events.filter(type="user.message").count() == 1


def test_auto_approve_says_which_tools_ask_on_whatever_is_answered_here(
    alice: User, converse: Converse
) -> None:
    rules = [ToolRule(tool="*"), ToolRule(tool="bash", permission="always_ask")]
    conversation, _script = converse(features={"approval": True}, tools=rules)
    asks(conversation)
    request_id, _calls = open_questions(conversation)
    frame = ApprovalResponse(request_id=request_id, decision="auto_approve")
    (accepted,) = act(frame, actor=alice, conversation=conversation)
    promise = accepted["auto_approve"]
    assert promise["holds"] is False
    assert "bash" in promise["asks_still"]
    assert "bash" in promise["message"]
    assert "read_file" not in promise["asks_still"]
    conversation.refresh_from_db()
    assert not conversation.features.approval
