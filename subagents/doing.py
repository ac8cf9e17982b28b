"""What an agent below does at this moment, in the words of one line, as its log says it."""

from __future__ import annotations

from django.utils.translation import gettext as _

from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import AgentMcpToolUse, AgentMessage, AgentToolUse
from jobs.prepared import Prepared
from reading.unseen import visible

WORDS = 160
"""Characters of what one says that a line shows."""

_LAST = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation,
        type__in=("agent.tool_use", "agent.mcp_tool_use", "agent.message", "agent.tool_result"),
    ).order_by("-seq")[:1]
)


def doing(child: Conversation) -> str:
    """The last thing in its log that says what it does."""
    row = _LAST.first(conversation=child.pk)
    value = row.value if row is not None else None
    match value:
        case None:
            return _("begins")
        case AgentToolUse() | AgentMcpToolUse():
            about = next((one for one in value.input.values() if isinstance(one, str)), "")
            return visible(f"{value.name} {' '.join(about.split())}")[:WORDS]
        case AgentMessage():
            return visible(" ".join(text_of(value.content).split()))[:WORDS]
        case _:
            return _("thinks")
