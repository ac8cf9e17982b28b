"""What the agent keeps for this conversation alone: the state of the work, and a buffer for what is in hand.

Both live in the log: each write is an event with a version, so that they outlive every rest, summary and
process, and go back with the dialogue. What outlives the conversation is memory's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import ToolError
from harness.events import SessionMemoryWritten
from harness.tools import Effect, Tool, ToolContext, ToolOutput

MOST: Mapping[str, int] = {"state": 8_000, "buffer": 20_000}
"""Characters of each part."""


Versions = tuple[SessionMemoryWritten, ...]


def session_memory_write(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    part, content = arguments["part"], arguments["content"]
    versions = context.memory.get(part, ())
    expected = arguments.get("expected_version")
    if expected is None and versions and arguments["mode"] == "replace":
        raise _with_what_is_there(
            f"The {part} has version {len(versions)}; replacing it needs expected_version.",
            part,
            versions,
        )
    if expected is not None and expected != len(versions):
        raise _with_what_is_there(
            f"The {part} is at version {len(versions)}, not {expected}: nothing was written.",
            part,
            versions,
        )
    source = context.tainted_by
    if arguments["mode"] == "append" and versions:
        content = "\n".join(filter(None, (versions[-1].text, content)))
        source = source or versions[-1].untrusted_by
    if len(content) > MOST[part]:
        raise ToolError(
            f"The {part} would have {len(content):,} characters; it holds {MOST[part]:,}.",
            hint="Replace it with what still matters.",
        )
    written = SessionMemoryWritten(
        part=part, version=len(versions) + 1, text=content, untrusted_by=source
    )
    return ToolOutput(f"The {part} is at version {written.version}.", events=(written,))


def session_memory_read(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    part, version = arguments.get("part"), arguments.get("version")
    if part is None:
        text = "\n\n".join(_now(each, context.memory.get(each, ())) for each in MOST)
        return _shown(text, [kept[-1] for kept in context.memory.values() if kept])
    versions = context.memory.get(part, ())
    if version is None:
        return _shown(_now(part, versions), versions[-1:])
    if not 0 < version <= len(versions):
        raise _with_what_is_there(f"The {part} has no version {version}.", part, versions)
    read = versions[version - 1]
    return _shown(f"{part}, version {version} of {len(versions)}:\n{read.text}", [read])


def _shown(text: str, read: Sequence[SessionMemoryWritten]) -> ToolOutput:
    source = _strangers_in(read)
    return ToolOutput(text, untrusted=bool(source), untrusted_by=source)


def _strangers_in(read: Sequence[SessionMemoryWritten]) -> str:
    return next((each.untrusted_by for each in read if each.untrusted_by), "")


def _with_what_is_there(message: str, part: str, versions: Versions) -> ToolError:
    source = _strangers_in(versions[-1:])
    return ToolError(message, hint=_now(part, versions), untrusted_by=source)


def _now(part: str, versions: Versions) -> str:
    if not versions:
        return f"{part}: nothing was written yet (version 0)."
    return f"{part}, version {len(versions)}:\n{versions[-1].text}"


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
        apart=True,
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
        apart=True,
        in_order=True,
        idempotent=True,
        intent=_intent,
    ),
)
