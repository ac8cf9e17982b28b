"""A Task of the protocol is a message in a log: what became of it, read from the events behind it.

Its id is the message's. Nothing else is kept, so it is there as soon as the message is, dies with nobody's
process, and says nothing that was taken out of the log. Whose it is: the person's who wrote the message.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from conversations.actions.messages import stop, withdraw_message
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.errors import Conflict, NotFound
from harness.events import (
    AgentMessage,
    InputTaken,
    MessageWithdrawn,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusTerminated,
)

from .tools import MOST_CHARACTERS, Principal, visible

TURNS = ("x.input_taken", "x.message_withdrawn", "session.status_idle", "session.status_terminated")
SAID = 200
"""Answers of one turn that are told."""


@dataclass(frozen=True, slots=True)
class Errand:
    """A message, and how far it has come: it waits in the queue, is worked on, has ended or was put away."""

    message: Event
    taken: int | None = None
    """The number of the event with which it was taken up."""
    end: Event | None = None

    @property
    def conversation(self) -> Conversation:
        return self.message.conversation

    @property
    def is_cancelled(self) -> bool:
        """Withdrawn, stopped by a person, or its conversation ended before it was done."""
        value = self.end.value if self.end is not None else None
        if isinstance(value, SessionStatusIdle):
            return value.interrupted
        return value is not None


def find_errand(who: Principal, uid: str) -> Errand:
    """Raises NotFound for what is no message of hers in a conversation that she sees."""
    rows = Event.objects.filter(
        uid=uid.replace("\0", ""),
        type="user.message",
        actor=who.user,
        conversation__in=visible(who),
    )
    message = rows.select_related("conversation").first()
    if message is None:
        raise NotFound(_("There is no such task."))
    return _followed(message)


def _followed(message: Event) -> Errand:
    later = Event.objects.filter(conversation=message.conversation_id, type__in=TURNS)
    taken: int | None = None
    for row in later.filter(seq__gt=message.seq).order_by("seq").iterator(chunk_size=100):
        match row.value:
            case InputTaken(event_ids=uids) if message.uid in uids:
                taken = row.seq
            case MessageWithdrawn(event_id=uid) if uid == message.uid:
                return Errand(message, None, row)
            case SessionStatusTerminated():
                return Errand(message, taken, row)
            case SessionStatusIdle() as rest if taken is not None and _ends(rest):
                return Errand(message, taken, row)
    return Errand(message, taken)


def _ends(rest: SessionStatusIdle) -> bool:
    """What waits, for a person or for a program, goes on."""
    return not isinstance(rest.stop_reason, RequiresAction)


def said_in(errand: Errand) -> str:
    """What the agent said to it."""
    if errand.taken is None:
        return ""
    rows = Event.objects.filter(
        conversation=errand.message.conversation_id, type="agent.message", seq__gt=errand.taken
    )
    if errand.end is not None:
        rows = rows.filter(seq__lt=errand.end.seq)
    return _joined(row.value for row in rows.order_by("-seq")[:SAID])


def _joined(values: Iterable[Any]) -> str:
    said = [text_of(each.content) for each in values if isinstance(each, AgentMessage)]
    return "\n\n".join(reversed(said))[:MOST_CHARACTERS]


def stopped_short(errand: Errand) -> str:
    """Why it came to no answer (a failure, a limit, a refusal), in words; empty where it did."""
    value = errand.end.value if errand.end is not None else None
    if not isinstance(value, SessionStatusIdle) or value.stop_reason.type == "end_turn":
        return ""
    details = value.stop_details
    if details is not None:
        return details.words
    return value.stop_reason.type.replace("_", " ")


def cancel(who: Principal, uid: str) -> None:
    """Have the agent stop with it, or take it out of the queue. What has ended stays as it is."""
    with transaction.atomic():
        errand = find_errand(who, uid)
        if errand.end is not None:
            return
        if errand.taken is not None:
            stop(actor=who.user, conversation=errand.conversation)
            return
        try:
            withdraw_message(
                actor=who.user, conversation=errand.conversation, message_uid=errand.message.uid
            )
        except Conflict:
            # It was taken up in this moment.
            stop(actor=who.user, conversation=errand.conversation)
