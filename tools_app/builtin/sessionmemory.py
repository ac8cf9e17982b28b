"""What the agent keeps for this conversation alone: the state of the work, and a buffer for what is in hand.

Both live in the log: each write is an event with a version, so that they outlive every rest, summary and
process, and go back with the dialogue. What outlives the conversation is memory's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import ToolError
from harness.events import SessionMemoryWritten
from harness.tools import Effect, Tool, ToolContext, ToolOutput

MOST: Mapping[str, int] = {"state": 8_000, "buffer": 20_000}
"""Characters of each part."""


def session_memory_write(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    part, content = arguments["part"], arguments["content"]
    versions = context.memory.get(part, ())
    expected = arguments.get("expected_version")
    if expected is None and versions and arguments["mode"] == "replace":
        raise ToolError(
            f"The {part} has version {len(versions)}; replacing it needs expected_version.",
            hint=_now(part, versions),
        )
    if expected is not None and expected != len(versions):
        raise ToolError(
            f"The {part} is at version {len(versions)}, not {expected}: nothing was written.",
            hint=_now(part, versions),
        )
    if arguments["mode"] == "append" and versions:
        content = "\n".join(filter(None, (versions[-1], content)))
    if len(content) > MOST[part]:
        raise ToolError(
            f"The {part} would have {len(content):,} characters; it holds {MOST[part]:,}.",
            hint="Replace it with what still matters.",
        )
    written = SessionMemoryWritten(part=part, version=len(versions) + 1, text=content)
    return ToolOutput(f"The {part} is at version {written.version}.", events=(written,))


def session_memory_read(context: ToolContext, arguments: dict[str, Any]) -> str:
    part, version = arguments.get("part"), arguments.get("version")
    if part is None:
        return "\n\n".join(_now(each, context.memory.get(each, ())) for each in MOST)
    versions = context.memory.get(part, ())
    if version is None:
        return _now(part, versions)
    if not 0 < version <= len(versions):
        raise ToolError(f"The {part} has no version {version}.", hint=_now(part, versions))
    return f"{part}, version {version} of {len(versions)}:\n{versions[version - 1]}"


def _now(part: str, versions: tuple[str, ...]) -> str:
    if not versions:
        return f"{part}: nothing was written yet (version 0)."
    return f"{part}, version {len(versions)}:\n{versions[-1]}"


def _intent(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("part") or "")


_PART = {
    "enum": list(MOST),
    "description": "state: goal, decisions, where the work stands. buffer: notes on what is in hand.",
}

TOOLS = (
    Tool(
        name="session_memory_write",
        description=(
            "Keep notes for this conversation: they stay word for word when older messages are "
            "summarised, and after every rest. Each write makes a version; older ones stay readable."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "part": _PART,
                "content": {"type": "string", "maxLength": max(MOST.values())},
                "mode": {"enum": ["replace", "append"]},
                "expected_version": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "The version you know; needed to replace. Another one is refused.",
                },
            },
            "required": ["part", "content", "mode"],
            "additionalProperties": False,
        },
        handler=session_memory_write,
        effect=Effect.READ,
        in_order=True,
        intent=_intent,
    ),
    Tool(
        name="session_memory_read",
        description="Read the notes of this conversation, as they are or as a version was.",
        input_schema={
            "type": "object",
            "properties": {"part": _PART, "version": {"type": "integer", "minimum": 1}},
            "additionalProperties": False,
        },
        handler=session_memory_read,
        effect=Effect.READ,
        in_order=True,
        idempotent=True,
        intent=_intent,
    ),
)
