"""The tool with which a run that works on an item of its queue asks for a follow-up of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db.models import Exists, OuterRef

from conversations.kitparts import Part
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from harness.errors import AgentError, ToolError
from harness.tools import Effect, Tool, ToolContext, ToolOutput

from .actions.items import add_follow_up
from .models import OrderRun
from .queueing import MOST_FOLLOW_UPS, TEXT_LIMIT

EXTRA = "work_queue"
"""The key of the conversation, among a context's extras."""


def queue_follow_up(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    conversation = Conversation.objects.get(pk=context.extras[EXTRA])
    try:
        item = add_follow_up(
            conversation=conversation,
            text=str(arguments["text"]),
            untrusted_by=context.tainted_by,
        )
    except AgentError as refusal:
        raise ToolError(refusal.message) from None
    return ToolOutput(f"It waits in the queue as {item.uid}; another run works on it.")


TOOL = Tool(
    name="queue_follow_up",
    description=(
        "Put a piece of work into your own queue that another run is to do after this one: what came up "
        f"and does not belong to this item. At most {MOST_FOLLOW_UPS} in a run, and follow-ups of "
        "follow-ups are refused."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "text": {
                "type": "string",
                "minLength": 1,
                "maxLength": TEXT_LIMIT,
                "description": "All that the other run has to know; it sees nothing of this conversation.",
            }
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    handler=queue_follow_up,
    effect=Effect.READ,
    apart=True,
    intent=lambda arguments: str(arguments.get("text", ""))[:200],
    in_order=True,
)


def works_queue() -> Exists:
    """Whether it is at an item of a queue."""
    runs = OrderRun.objects.open().filter(order__works_queue=True)
    return Exists(runs.filter(conversation=OuterRef("pk")))


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    return Part(tools={TOOL.name: TOOL}, extras={EXTRA: conversation.pk})
