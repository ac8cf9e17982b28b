"""Calls of threads that ask, as their session's list and stream have them, and the answers to them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from approvals.models import Approval
from conversations.actions.conversations import create_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from harness.events import (
    ApprovalRequested,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
)
from harness.history import Entry
from harness.rules import AskTerms
from memory.actions.remembering import own_store, remember
from subagents.asks import tell_asks
from tests.approvals.asking import asks
from tests.conversations.conftest import Converse
from tools_app.touches import as_text

pytestmark = pytest.mark.django_db(transaction=True)

Wire = dict[str, Any]


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)


class Program:
    """Who follows a session at `/v1` alone."""

    def __init__(self, secret: str, session: Conversation) -> None:
        self._client = Client(headers={"x-api-key": secret})
        self._address = f"/v1/sessions/{session.uid}/events"

    def told(self) -> list[Wire]:
        return list(self._client.get(self._address).json()["data"])

    def answer(self, call: str, result: str, read_to: str) -> tuple[int, str]:
        """The status, and why it was refused."""
        body = {"type": "user.tool_confirmation", "tool_use_id": call, "result": result}
        events = {"events": [{**body, "x_read_to": read_to}]}
        answer = self._client.post(self._address, events, "application/json")
        told = answer.json()
        return answer.status_code, told["error"]["details"]["error_code"] if "error" in told else ""

    def refused(self, call: str, **given: Any) -> str:
        """What is wrong with a yes to the call."""
        body = {"type": "user.tool_confirmation", "tool_use_id": call, "result": "allow", **given}
        answer = self._client.post(self._address, {"events": [body]}, "application/json")
        assert answer.status_code == 400, answer.content
        return str(answer.json()["error"]["details"]["field"])


@pytest.fixture
def session(converse: Converse) -> Conversation:
    return converse()[0]


@pytest.fixture
def thread(alice: User, acme: Organisation, session: Conversation) -> Conversation:
    return create_conversation(
        actor=alice,
        organisation=acme,
        agent=session.agent_version.agent,
        environment=session.environment,
        parent=session,
    )


@pytest.fixture
def program(alice: User, acme: Organisation, session: Conversation) -> Program:
    scopes = [
        TokenScope.CONVERSATIONS_READ,
        TokenScope.CONVERSATIONS_WRITE,
        TokenScope.APPROVALS_DECIDE,
    ]
    token = create_token(actor=alice, organisation=acme, name="Tests", scopes=scopes)
    return Program(token.secret, session)


def told_above(thread: Conversation) -> None:
    assert thread.parent_id is not None
    tell_asks(thread.parent_id)


def asked_again(asked: Approval) -> None:
    """As a run asks that took up a conversation after its process had died under the call."""
    request = ApprovalRequested(
        tool_use_id=asked.call_uid, reason="It takes more now.", terms=AskTerms(effect="workspace")
    )
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(asked.call_uid,)))
    append(asked.conversation_id, [Entry.of(request), Entry.of(rest)])


def asked_anew(asked: Approval, *, told_between: bool) -> None:
    thread = asked.conversation
    append(thread.pk, [Entry.of(SessionStatusRunning())])
    if told_between:
        told_above(thread)
    asked_again(asked)
    told_above(thread)


def confirmed(asked: Approval) -> list[str]:
    rows = Event.objects.filter(subject=asked.call_uid, type="user.tool_confirmation")
    return [row.value.result for row in rows]


def rests(program: Program) -> list[Wire]:
    return [each for each in program.told() if each["type"] == "session.thread_status_idle"]


TOLD_BETWEEN = pytest.mark.parametrize("told_between", [True, False])


@TOLD_BETWEEN
def test_a_yes_to_the_call_of_a_thread_answers_the_question_that_was_read_and_no_later_one(
    program: Program, thread: Conversation, told_between: bool
) -> None:
    asked = asks(thread)
    told_above(thread)
    (first,) = rests(program)
    asked_anew(asked, told_between=told_between)
    asked.refresh_from_db()
    assert asked.round == 2

    told = program.told()
    assert [each["id"] for each in told].count(asked.call_uid) == 2, "it is shown as it is now"
    assert [each["type"] for each in told].count("session.status_idle") == 2
    assert program.answer(asked.call_uid, "allow", first["x_read_to"]) == (409, "asked_anew")
    assert confirmed(asked) == []
    assert program.answer(asked.call_uid, "allow", rests(program)[-1]["x_read_to"])[0] == 200
    assert confirmed(asked) == ["allow"]


def test_what_was_read_last_of_a_session_says_up_to_where_it_was_read(
    program: Program, session: Conversation, thread: Conversation
) -> None:
    """Also where that tells of its threads: of one row of the log there may be several events."""
    asked = asks(session)
    asked_again(asked)
    asks(thread)
    told_above(thread)
    last = program.told()[-1]["id"]
    assert program.answer(asked.call_uid, "allow", last) == (200, "")
    assert confirmed(asked) == ["allow"]


def test_what_is_no_event_or_no_fit_input_is_named_as_it_was_sent(
    program: Program, session: Conversation
) -> None:
    asked = asks(session)
    asked_again(asked)
    assert program.refused(asked.call_uid, x_read_to="sevt_nothing") == "events[0].x_read_to"
    unfit = {"path": 7}
    assert program.refused(asked.call_uid, x_edited_input=unfit) == "events[0].x_edited_input"
    assert confirmed(asked) == []


def test_a_call_is_denied_whatever_was_read(program: Program, thread: Conversation) -> None:
    asked = asks(thread)
    told_above(thread)
    asked_anew(asked, told_between=True)
    assert program.answer(asked.call_uid, "deny", program.told()[-1]["id"])[0] == 200
    assert confirmed(asked) == ["deny"]


def test_the_call_of_a_thread_is_shown_with_what_it_acts_on(
    alice: User, acme: Organisation, program: Program, thread: Conversation
) -> None:
    store = own_store(actor=alice, organisation=acme)
    mine = remember(actor=alice, store=store, text="The office is in Lisbon.", key="office").memory
    asked = asks(thread, {"id": mine.uid}, tool="forget_memory")
    told_above(thread)
    (shown,) = (each for each in program.told() if each["id"] == asked.call_uid)
    assert "-The office is in Lisbon." in as_text(shown["x_acts_on"])
    assert (shown["type"], shown["x_name"]) == ("agent.tool_use", "forget_memory")
    assert "x_seq" not in shown, "the last one of its row has it"
