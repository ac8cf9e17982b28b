"""A place for the model to reason in words between other calls; it does nothing."""

from __future__ import annotations

from typing import Any

from harness.tools import Effect, Tool, ToolContext


async def think(_context: ToolContext, _arguments: dict[str, Any]) -> str:
    return "Noted."


TOOLS = (
    Tool(
        name="think",
        description=(
            "Write down a thought: weigh options, check a plan or review what was done before "
            "finishing. It changes nothing and finds nothing out."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "thought": {"type": "string", "minLength": 1, "maxLength": 50_000},
            },
            "required": ["thought"],
            "additionalProperties": False,
        },
        handler=think,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
    ),
)
