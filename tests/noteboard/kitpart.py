"""What the board adds to a run: a tool, what the tool is handed, and a section of the prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conversations.kitparts import Part, Section
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from harness.tools import Effect, Tool, ToolContext, ToolOutput

from .events import NotePinned
from .models import Note

EXTRA = "noteboard"


def pin_note(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    board: str = context.extras[EXTRA]
    text = arguments["text"]
    return ToolOutput(f"It hangs on {board}.", events=(NotePinned(text=text),))


PIN = Tool(
    name="pin_note",
    description="Pin a note to the board.",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    handler=pin_note,
    effect=Effect.READ,
    owner="noteboard",
)


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    count = Note.objects.filter(conversation=conversation).count()
    return Part(
        tools={PIN.name: PIN},
        extras={EXTRA: f"the board of {conversation.owner.username}"},
        sections=(Section(200, f"There are {count} notes on the board."),),
    )
