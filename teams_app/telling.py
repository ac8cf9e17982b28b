"""What conversations are told of a board: events for who reads them, and words for an agent that waits.

Who may bring a change about has been decided by then (`actions`).
"""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings

from accounts.models import User
from conversations.log import append
from conversations.models import Conversation
from conversations.wakes import wake
from harness.content import Text
from harness.events import AppEvent, MessageSteered, UserMessage
from harness.history import Entry

from .boards import facts_of
from .events import TaskEvent
from .models import Board, Task, Team


def tell_of(
    kind: type[TaskEvent],
    board: Board,
    task: Task,
    *,
    actor: User,
    by: Conversation | None,
    also: Iterable[int | None] = (),
    **fields: str,
) -> None:
    """Store what happened to a task in every conversation that it concerns, in the transaction this is
    called in, which holds the board."""
    concerned = {
        board.conversation_id,
        by.pk if by else None,
        task.owner_conversation_id,
        *also,
        *task.links.values_list("conversation_id", flat=True),
    }
    facts = facts_of(task)
    # In one order, so that two boards with a conversation in common do not wait for each other.
    for pk in _going_on(concerned):
        quiet = by is not None and by.pk == pk
        event = kind.model_validate(
            {"board_id": board.uid, "task": facts, "quiet": quiet, **fields}
        )
        append(pk, [Entry.of(event)], actor=None if by else actor)


def say_to_agent(conversation_id: int, text: str, *, untrusted_by: str = "") -> None:
    """Have the agent of a conversation hear of it at its next step, as a message of its own; nobody has
    spoken by it. Nothing where the conversation has ended, or too many messages wait there already."""
    going_on = Conversation.objects.filter(
        pk=conversation_id, queued_count__lt=settings.AGENTSITE_QUEUED_MESSAGES
    )
    if not going_on.exclude(status=Conversation.Status.TERMINATED).exists():
        return
    said = Entry.of(
        UserMessage(content=(Text(text=text),), by_agent=True, untrusted_by=untrusted_by)
    )
    append(conversation_id, [said, Entry.of(MessageSteered(event_id=said.uid))])
    wake(conversation_id)


def _going_on(conversations: Iterable[int | None]) -> list[int]:
    found = Conversation.objects.filter(pk__in=[pk for pk in conversations if pk is not None])
    open_ = found.exclude(status=Conversation.Status.TERMINATED)
    return list(open_.order_by("pk").values_list("pk", flat=True))


def tell_team(team: Team, event: AppEvent, *, actor: User | None = None) -> None:
    """Store what happened in a team in the log of whoever leads it, unless that has ended. `actor`: who did
    it, if a person did."""
    for pk in _going_on([team.lead_id]):
        append(pk, [Entry.of(event)], actor=actor)
