"""The agent asks that older messages be summarised before it goes on. Doing it is the loop's part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.events import CompactionRequested
from harness.tools import Effect, Tool, ToolContext, ToolOutput

MOST = 1_000
"""Characters of a focus."""


def compact(_context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    focus = " ".join(str(arguments.get("focus") or "").split())
    return ToolOutput(
        "Older messages will be summarised before your next step.",
        events=(CompactionRequested(focus=focus, by_agent=True),),
    )


def _focus(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("focus") or "")


TOOLS = (
    Tool(
        name="compact",
        description=(
            "Have older messages summarised now, to make room for more work. Call it between two parts "
            "of a long task. Todos, the plan and skills you read stay as they are."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "focus": {
                    "type": "string",
                    "maxLength": MOST,
                    "description": "What the summary must keep in detail.",
                }
            },
            "additionalProperties": False,
        },
        handler=compact,
        effect=Effect.READ,
        apart=True,
        in_order=True,
        intent=_focus,
    ),
)
