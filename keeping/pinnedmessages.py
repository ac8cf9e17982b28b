"""Which messages and answers of a conversation are pinned now, read from its log.

What an agent is told of them is `harness.keepsakes`' part, who may pin `actions.pinning`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from conversations.branches import counts
from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import (
    AgentMessage,
    ContentRedacted,
    MessageEdited,
    MessagePinned,
    MessageWithdrawn,
    UserMessage,
)
from jobs.prepared import Prepared

PINNABLE = ("user.message", "agent.message")
_TOLD_OF = (*PINNABLE, "x.message_edited", "x.message_withdrawn", "x.content_redacted")
_WISHES = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type="x.message_pinned"
    ).order_by("seq")
)


@dataclass(slots=True)
class Pinned:
    subject: str
    """By which the page knows it."""
    by_agent: bool
    text: str


def wanted_in(conversation: Conversation) -> set[str]:
    """What somebody wants pinned, on whichever branch it stands and whether or not it still says anything."""
    wanted: dict[str, bool] = {}
    for row in _WISHES.all(conversation=conversation.pk):
        if isinstance(row.value, MessagePinned):
            wanted[row.value.event_id] = row.value.pinned
    return {uid for uid, pinned in wanted.items() if pinned}


def pinned_in(conversation: Conversation) -> list[Pinned]:
    """Those that stand on the branch that counts, in the order of the dialogue; one query where there are
    none."""
    wanted = wanted_in(conversation)
    return list(said_in(conversation, wanted).values()) if wanted else []


def said_in(conversation: Conversation, subjects: set[str]) -> dict[str, Pinned]:
    """Messages and answers of these that count now, as they are now, in the order of the dialogue; without
    those that were withdrawn or taken out."""
    here = counts(conversation)
    rows = Event.objects.filter(
        conversation=conversation, subject__in=subjects, type__in=_TOLD_OF
    ).order_by("seq")
    found: dict[str, Pinned] = {}
    for row in rows:
        if not here(row):
            continue
        match row.value:
            case UserMessage(content=content):
                found[row.subject] = Pinned(row.subject, False, text_of(content))
            case AgentMessage(content=content):
                said = found.setdefault(row.subject, Pinned(row.subject, True, ""))
                said.text += text_of(content)
            case MessageEdited(content=content) if row.subject in found:
                found[row.subject].text = text_of(content)
            case MessageWithdrawn() | ContentRedacted():
                found.pop(row.subject, None)
            case _:
                pass
    return found
