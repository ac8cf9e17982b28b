"""What may be gone on with: asked of the tables, the answer is the one that the whole log gives."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.log import append, entries_after
from conversations.models import Conversation
from conversations.retrying import may_retry
from harness.content import as_blocks
from harness.events import (
    AgentCustomToolUse,
    AgentToolResult,
    BackgroundFinished,
    ContentSetAside,
    EndTurn,
    Event,
    InputTaken,
    MessageWithdrawn,
    RequiresAction,
    RetriesExhausted,
    RetryRequested,
    SessionStatusIdle,
    UserMessage,
    WakeDue,
)
from harness.history import BACKGROUND_TURNS, Entry, History
from tests.conversations.conftest import Converse
from tests.conversations.scenes import fill
from tests.properties import examples

FAILED = SessionStatusIdle(stop_reason=RetriesExhausted())
DONE = SessionStatusIdle(stop_reason=EndTurn())


def ended() -> BackgroundFinished:
    return BackgroundFinished(background_id="b", command="make", state="completed")


class Scribe:
    """Writes a log that a run could have left, choosing at random what happens next."""

    def __init__(self, conversation: Conversation, seed: int) -> None:
        self._conversation = conversation
        self._random = random.Random(seed)
        self._waiting: list[str] = []
        self._calls: list[str] = []
        self._taken: list[str] = []

    def write(self, steps: int) -> None:
        for _ in range(steps):
            acts = [self._say, self._say, self._turn, self._turn, self._retry, self._set_aside]
            self._random.choice(acts)()

    def _add(self, event: Event) -> str:
        entry = Entry.of(event)
        append(self._conversation.pk, [entry], actor=self._conversation.owner)
        return entry.uid

    def _say(self) -> None:
        wakers: list[Event] = [WakeDue(reason="time"), ended()]
        if self._random.random() < 0.5:
            self._waiting.append(self._add(self._random.choice(wakers)))
            return
        message = self._add(UserMessage(content=as_blocks("Go.")))
        if self._random.random() < 0.1:
            self._add(MessageWithdrawn(event_id=message))
        else:
            self._waiting.append(message)

    def _turn(self) -> None:
        if not self._waiting:
            self._say()
        taken, self._waiting = self._waiting[:1], self._waiting[1:]
        self._taken += taken
        self._add(InputTaken(event_ids=tuple(taken)))
        if self._random.random() < 0.4:
            self._calls.append(self._add(AgentCustomToolUse(name="ask", input={})))
        if self._calls and self._random.random() < 0.2:
            self._add(SessionStatusIdle(stop_reason=RequiresAction(event_ids=(self._calls[0],))))
        if self._calls and self._random.random() < 0.6:
            call = self._calls.pop()
            self._add(AgentToolResult(tool_use_id=call, content=as_blocks("Fine.")))
        if self._random.random() < 0.8:
            self._add(self._random.choice([FAILED, DONE]))

    def _set_aside(self) -> None:
        if self._taken:
            self._add(ContentSetAside(event_id=self._random.choice(self._taken)))

    def _retry(self) -> None:
        self._add(RetryRequested(from_start=self._random.random() < 0.5))


def both(conversation: Conversation) -> tuple[bool, bool]:
    whole = History(entries_after(conversation.pk, 0)).may_retry
    return may_retry(conversation), whole


@pytest.mark.parametrize("seed", range(examples(40)))
def test_the_tables_say_what_the_whole_log_says(converse: Converse, seed: int):
    conversation, _ = converse()
    scribe = Scribe(conversation, seed)
    for _ in range(5):
        scribe.write(2)
        asked, whole = both(conversation)
        assert asked is whole, [entry.event.type for entry in entries_after(conversation.pk, 0)]


def rounds(times: int) -> Iterator[list[Entry]]:
    """Turns that ended commands began, and one more end after a failure."""
    for number in range(times):
        end = Entry.of(ended())
        yield [end, Entry.of(InputTaken(event_ids=(end.uid,)))]
        yield [Entry.of(FAILED if number == times - 1 else DONE)]
    yield [Entry.of(ended())]


@pytest.mark.parametrize("times", [BACKGROUND_TURNS - 1, BACKGROUND_TURNS])
def test_commands_that_woke_the_agent_too_often_are_no_reason_to_go_on(
    converse: Converse, times: int
):
    conversation, _ = converse()
    for entries in rounds(times):
        append(conversation.pk, entries)
    asked, whole = both(conversation)
    assert asked is whole


def test_asking_costs_as_much_in_a_long_log_as_in_a_short_one(converse: Converse):
    conversation, _ = converse()
    counts = []
    for events in (40, 4_000):
        fill(conversation, events, first_seq=conversation.last_seq + 1)
        conversation.last_seq += events
        conversation.save(update_fields=["last_seq"])
        append(conversation.pk, [Entry.of(FAILED)])
        conversation.refresh_from_db()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            may_retry(conversation)
        counts.append(len(queries))
        assert not any("payload" in q["sql"] and "LIMIT" not in q["sql"] for q in queries)
    assert counts[0] == counts[1] <= 6
