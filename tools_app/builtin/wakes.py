"""The tool with which an agent goes to sleep and has itself woken later."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harness.errors import ToolError
from harness.events import WakeRequested
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from reading.moments import moment_of

MAX_IN_ROW = 3
"""Turns an agent may begin by itself before a person has to speak again."""
MAX_PER_TURN = 3
MAX_DELAY = 24 * 60 * 60
"""Seconds."""


def continue_later(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    if context.wakes_in_row >= MAX_IN_ROW:
        raise ToolError(
            f"You have woken yourself {MAX_IN_ROW} times in a row. Sleep now: say where things stand "
            "and what you wait for. You can go on when a person has spoken."
        )
    if context.wakes_requested >= MAX_PER_TURN:
        raise ToolError(f"At most {MAX_PER_TURN} wakes can be asked for in one turn.")
    wake = WakeRequested(
        delay_seconds=_delay(arguments),
        reason=arguments["reason"],
        note=arguments.get("note", ""),
        dedupe_key=arguments.get("key", ""),
        priority=arguments.get("priority", "normal"),
    )
    return ToolOutput(
        f"You will be woken in {wake.delay_seconds} seconds. End your turn now with a short word on "
        "where things stand.",
        events=(wake,),
    )


def _delay(arguments: Mapping[str, Any]) -> int:
    """Seconds from now. Raises ToolError for what says no time, or one out of reach."""
    seconds, until = arguments.get("seconds"), arguments.get("until")
    if (seconds is None) == (until is None):
        raise ToolError("Give either `seconds` or `until`.")
    if seconds is not None:
        return int(seconds)
    moment = moment_of(until)
    if moment is None:
        raise ToolError("`until` is no ISO 8601 time such as 2030-01-31T09:00:00+01:00.")
    if moment.tzinfo is None:
        raise ToolError("`until` says no offset: write it like 2030-01-31T09:00:00+01:00.")
    now = datetime.now(UTC)
    delay = (moment - now).total_seconds()
    if not 0 < delay <= MAX_DELAY:
        raise ToolError(
            f"`until` must lie within the next {MAX_DELAY // 3600} hours; it is {now:%Y-%m-%dT%H:%M:%SZ} now."
        )
    return max(1, round(delay))


def _intent(arguments: Mapping[str, Any]) -> str:
    when = arguments.get("until") or f"{arguments.get('seconds')} s"
    return f"{when}: {arguments.get('reason')}"


TOOLS = (
    Tool(
        name="continue_later",
        description=(
            "Go to sleep and be woken in this conversation after some seconds or at a time, to look at "
            "something again or to go on with work that has to wait. Ends of background commands and of "
            "subagents wake you by themselves. Not for work you can do now. At most "
            f"{MAX_IN_ROW} times in a row without a person speaking in between."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "seconds": {"type": "integer", "minimum": 1, "maximum": MAX_DELAY},
                "until": {
                    "type": "string",
                    "maxLength": 40,
                    "description": "In place of seconds: an ISO 8601 time with its offset.",
                },
                "reason": {"type": "string", "minLength": 1, "maxLength": 500},
                "note": {
                    "type": "string",
                    "maxLength": 4000,
                    "description": "What you want to remember when you wake.",
                },
                "key": {
                    "type": "string",
                    "maxLength": 100,
                    "description": "Of wakes with the same key only one is kept waiting.",
                },
                "priority": {"enum": ["low", "normal", "high"]},
            },
            "required": ["reason"],
            "additionalProperties": False,
        },
        handler=continue_later,
        effect=Effect.READ,
        apart=True,
        intent=_intent,
        in_order=True,
    ),
)
