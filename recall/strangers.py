"""Whether anything in a conversation was written by strangers: then what is learned there waits for a yes."""

from __future__ import annotations

from django.db.models import Q

from conversations.models import Conversation, Event
from harness.events import MessageEdited, UserMessage
from harness.history import Entry, untrusted_in_answer, untrusted_in_input

_ANSWERS = ("agent.tool_result", "x.background_finished")
_MARKED = (
    Q(type__in=("agent.mcp_tool_result", "x.mcp_elsewhere"))
    | Q(type__endswith="tool_result", payload__untrusted=True)
    | Q(type__in=_ANSWERS, payload__has_key="untrusted_by") & ~Q(payload__untrusted_by="")
    | Q(type="agent.tool_result", payload__content__icontains='"image"')
    | Q(type="agent.tool_result", payload__content__icontains='"document"')
)
_GIVEN = ("user.message", "x.message_edited", "user.custom_tool_result", "user.tool_result")
"""What comes from outside, each of which is looked at."""


def has_strangers_words(conversation: Conversation) -> bool:
    """However long ago: a later word of a person does not make it hers. What counts is what taints a run
    (`harness.history`)."""
    log = Event.objects.filter(conversation=conversation)
    if log.filter(_MARKED).exists():
        return True
    return any(_brings(row.entry()) for row in log.filter(type__in=_GIVEN).iterator())


def _brings(entry: Entry) -> bool:
    match entry.event:
        case MessageEdited(content=content):
            return bool(untrusted_in_input(Entry.of(UserMessage(content=content))))
        case UserMessage():
            return bool(untrusted_in_input(entry))
        case _:
            return bool(untrusted_in_answer(entry.event, "a tool"))
