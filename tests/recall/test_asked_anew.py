"""A yes to a call that was asked about anew is for what it acts on by then, as whoever says it is shown."""

from __future__ import annotations

import io
from typing import Any

import pytest

from accounts.models import Organisation, User
from approvals.models import Approval
from conversations.log import append
from conversations.models import Conversation, Event
from harness.events import (
    AgentToolUse,
    ApprovalRequested,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
)
from harness.history import Entry
from harness.rules import AskTerms
from memory.actions.remembering import correct_memory, own_store, remember
from memory.models import Memory
from terminal.local import LocalDoor
from terminal.screen import Screen
from terminal.talk import Talk
from tests.approvals.asking import asks
from tests.cast import ClientOf
from tools_app.touches import as_text
from v1.outgoing import wire_events

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)
    monkeypatch.setattr("terminal.local.here.start_recurring", lambda: None)


@pytest.fixture
def mine(alice: User, acme: Organisation) -> Memory:
    store = own_store(actor=alice, organisation=acme)
    return remember(actor=alice, store=store, text="The office is in Lisbon.", key="office").memory


def asked_again(conversation: Conversation, call: str) -> None:
    """As a run leaves it that weighs the call again."""
    request = ApprovalRequested(
        tool_use_id=call, reason="It takes more now.", terms=AskTerms(effect="workspace")
    )
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(call,)))
    append(conversation.pk, [Entry.of(each) for each in (SessionStatusRunning(), request, rest)])


class Terminal:
    def __init__(self, person: User, conversation: Conversation) -> None:
        self._said = io.StringIO()
        door = LocalDoor(person, conversation.organisation)
        screen = Screen(out=self._said, notes=self._said)
        self.talk: Any = Talk(door, screen, conversation.uid, None)

    def said(self) -> str:
        """Since it was asked last."""
        words = self._said.getvalue()
        self._said.seek(0)
        self._said.truncate()
        return words


def test_a_terminal_shows_what_the_call_acts_on_by_now(
    alice: User, converse: Any, mine: Memory
) -> None:
    conversation = converse()[0]
    asked = asks(conversation, {"id": mine.uid}, tool="forget_memory")
    terminal = Terminal(alice, conversation)
    assert terminal.talk._until_rest() is not None
    correct_memory(actor=alice, memory=mine, text="The office is in Faro.")
    asked_again(conversation, asked.call_uid)
    rest = terminal.talk._until_rest()
    shown = []

    def decides(_question: str) -> str:
        shown.append(terminal.said())
        return "y"

    terminal.talk._ask(rest, decides)
    assert "-The office is in Faro." in shown[0]
    assert "Lisbon" not in shown[0]
    asked.refresh_from_db()
    assert (asked.state, asked.round) == ("approved", 2)


def test_a_terminal_without_a_prompt_shows_what_the_command_that_it_names_would_allow(
    alice: User, converse: Any, mine: Memory
) -> None:
    conversation = converse()[0]
    asked = asks(conversation, {"id": mine.uid}, tool="forget_memory")
    terminal = Terminal(alice, conversation)
    rest = terminal.talk._until_rest()
    terminal.talk._say_what_waits(rest)
    said = terminal.said()
    assert "-The office is in Lisbon." in said
    assert (
        f"forget_memory waits for a decision: agent approve {conversation.uid} {asked.call_uid}"
        in said
    )


@pytest.mark.parametrize("again", [False, True])
def test_a_terminal_that_began_to_follow_later_shows_the_call_that_it_asks_about(
    alice: User, converse: Any, mine: Memory, again: bool
) -> None:
    conversation = converse()[0]
    asked = asks(conversation, {"id": mine.uid}, tool="forget_memory")
    terminal = Terminal(alice, conversation)
    terminal.talk._seen = conversation.events.latest("seq").uid
    correct_memory(actor=alice, memory=mine, text="The office is in Faro.")
    if again:
        asked_again(conversation, asked.call_uid)
    else:
        rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(asked.call_uid,)))
        append(conversation.pk, [Entry.of(each) for each in (SessionStatusRunning(), rest)])
    questions = []

    def decides(question: str) -> str:
        questions.append(question)
        return "n"

    terminal.talk._ask(terminal.talk._until_rest(), decides)
    said = terminal.said()
    assert questions[0].startswith("Allow forget_memory?")
    assert mine.uid in said
    assert f"-The office is in {'Faro' if again else 'Lisbon'}." in said


def test_a_program_is_told_it_with_the_rest_that_waits_for_the_call(
    alice: User, converse: Any, mine: Memory
) -> None:
    conversation = converse()[0]
    asked = asks(conversation, {"id": mine.uid}, tool="forget_memory")
    correct_memory(actor=alice, memory=mine, text="The office is in Faro.")
    first = rest_of(alice, conversation)
    assert "x_acts_on" not in first, "the call itself has it"
    asked_again(conversation, asked.call_uid)
    told = rest_of(alice, conversation)["x_acts_on"]
    assert list(told) == [asked.call_uid]
    assert "-The office is in Faro." in as_text(told[asked.call_uid])


def test_also_of_a_call_that_nobody_was_asked_about_when_it_was_told(
    alice: User, converse: Any, mine: Memory
) -> None:
    """A hook asks about what every rule allows."""
    conversation = converse()[0]
    use = Entry.of(AgentToolUse(name="forget_memory", input={"id": mine.uid}))
    append(conversation.pk, [Entry.of(SessionStatusRunning()), use])
    asked_again(conversation, use.uid)
    assert Approval.objects.get().round == 1
    told = rest_of(alice, conversation)["x_acts_on"]
    assert "-The office is in Lisbon." in as_text(told[use.uid])


def test_the_form_behind_a_card_shows_what_its_answer_is_for(
    alice: User, converse: Any, mine: Memory, client_of: ClientOf
) -> None:
    conversation = converse()[0]
    asked = asks(conversation, {"id": mine.uid}, tool="forget_memory")
    correct_memory(actor=alice, memory=mine, text="The office is in Faro.")
    asked_again(conversation, asked.call_uid)
    client = client_of(alice)
    earlier = {"place": "conversation", "verdict": "approve", "round": "1"}
    earlier["input_hash"] = asked.effective_sha256
    refused = client.post(f"/approvals/{asked.uid}/decide/", earlier)
    assert refused.status_code == 422
    form = client.get(f"/approvals/calls/{asked.call_uid}/longer/")
    for page in (refused.content.decode(), form.content.decode()):
        assert 'name="round" value="2"' in page
        assert "The office is in Faro." in page.partition('class="touched"')[2]


def rest_of(reader: User, conversation: Conversation) -> dict[str, Any]:
    """The last one, as a program reads it that knows the public events alone."""
    rows = Event.objects.filter(conversation=conversation).order_by("seq")
    rests = (
        each for each in wire_events(rows, reader=reader) if each["type"] == "session.status_idle"
    )
    return list(rests)[-1]
