"""Whether anything in a conversation was written by strangers: then what is learned there waits for a yes."""

from __future__ import annotations

from django.db.models import Q

from conversations.ancestry import ancestors
from conversations.models import Conversation, Event
from conversations.provenance import TableProvenance
from harness.errors import ToolError
from harness.events import bringing_types
from harness.history import strangers_in
from harness.tools import ToolContext

from .models import AttachedStore

_ANSWERS = ("agent.tool_result", "x.background_finished", "span.outcome_evaluation_end")
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
    (`harness.history`), here and where its agent was told what to do."""
    log = Event.objects.filter(conversation__in=[conversation.pk, *ancestors(conversation)])
    if log.filter(_MARKED).exists():
        return True
    given = log.filter(type__in=(*_GIVEN, *bringing_types()))
    return any(strangers_in(row.entry()) for row in given.iterator())


def require_asked(context: ToolContext, conversation: Conversation) -> None:
    """For a call that asks once there are strangers' words: where those are that its run does not know of,
    nobody was asked. Raises ToolError."""
    if not context.ever_tainted_by and has_strangers_words(conversation):
        raise ToolError(
            "Strangers' words were read here, so only a person takes away what is remembered.",
            hint="She does it under Memory.",
        )


def commands_may_bring_them(conversation: Conversation) -> bool:
    """Whether a command that is not over, or that brought some, may have written them into any file: what it
    brings is told in the log when it has ended."""
    return TableProvenance(conversation.pk).foreign().since is not None


def mark_as_strangers(conversation: Conversation, attached: AttachedStore, path: str) -> None:
    """Commands of the conversation find it among the files of the store: they may have read strangers' words
    from now on."""
    place = f"{attached.path}{path}".lstrip("/")
    TableProvenance(conversation.pk).mark_file(place, "it is a memory that nobody has confirmed")
