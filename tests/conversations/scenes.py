"""Conversations as tests of pages need them: begun, talked in, many at once, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from conversations.actions.conversations import create_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import Text
from harness.events import (
    AgentMessage,
    EndTurn,
    InputTaken,
    SessionStatusIdle,
    SessionStatusRunning,
    UserMessage,
    dump,
    subject_of,
)
from harness.events import Event as EventValue
from harness.history import Entry
from harness.ids import new_conversation_id, new_event_id


def begin(
    owner: User, organisation: Organisation, agent: Agent, environment: Environment, title: str = ""
) -> Conversation:
    return create_conversation(
        actor=owner, organisation=organisation, agent=agent, environment=environment, title=title
    )


def talk(conversation: Conversation, question: str, answer: str) -> None:
    """One finished turn."""
    message = Entry.of(UserMessage(content=(Text(text=question),)))
    append(conversation.pk, [message], actor=conversation.owner)
    append(
        conversation.pk,
        [
            Entry.of(InputTaken(event_ids=(message.uid,))),
            Entry.of(AgentMessage(content=(Text(text=answer),))),
            Entry.of(SessionStatusIdle(stop_reason=EndTurn())),
        ],
    )


def many(like: Conversation, conversations: int, events: int) -> list[Conversation]:
    """So many conversations beside `like`, each with a log of so many events, written in bulk."""
    now = timezone.now()
    rows = Conversation.objects.bulk_create(
        Conversation(
            uid=new_conversation_id(),
            organisation=like.organisation,
            owner=like.owner,
            agent_version=like.agent_version,
            environment=like.environment,
            title=f"Number {number}",
            stored_features=like.stored_features,
            last_seq=events,
            active_at=now - timedelta(minutes=number),
        )
        for number in range(conversations)
    )
    for row in rows:
        fill(row, events)
    return rows


def fill(conversation: Conversation, events: int, first_seq: int = 1) -> None:
    """Write turns of four events until the log has so many more."""
    values: list[tuple[str, EventValue]] = []
    while len(values) < events:
        message = new_event_id()
        turn: Sequence[tuple[str, EventValue]] = (
            (message, UserMessage(content=(Text(text=f"question {len(values)}"),))),
            (new_event_id(), InputTaken(event_ids=(message,))),
            (new_event_id(), SessionStatusRunning()),
            (new_event_id(), AgentMessage(content=(Text(text=f"answer {len(values)}"),))),
        )
        values.extend(turn)
    now = timezone.now()
    Event.objects.bulk_create(
        Event(
            conversation=conversation,
            seq=first_seq + place,
            uid=uid,
            type=value.type,
            subject=subject_of(uid, value),
            payload=dump(value),
            processed_at=now,
            created_at=now,
        )
        for place, (uid, value) in enumerate(values[:events])
    )
