"""Takes out what a server asked of a person for a call whose result was taken out."""

from __future__ import annotations

from conversations.forgetting import Removed
from harness.events import ToolResult, answered_call

from .models import McpQuestion


def forget(removed: Removed) -> None:
    """The call has its result, so nobody is asked any more and nothing is told to the server again."""
    for entry in removed.entries:
        call = answered_call(entry.event) if isinstance(entry.event, ToolResult) else None
        if call is not None:
            asked = McpQuestion.objects.filter(conversation=removed.conversation, call_uid=call)
            asked.update(asked={}, sealed="")
