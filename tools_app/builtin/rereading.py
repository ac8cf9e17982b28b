"""What the agent reads again of its own conversation: what a summary, a cut or a shortening took from it.

It sees the path that counts, never another conversation; finding things across conversations is memory's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.content import Block, Text
from harness.errors import ToolError
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AppEvent,
    ApprovalRequested,
    CompactionSkipped,
    ContentSetAside,
    Event,
    FeedbackGiven,
    InputTaken,
    MessageEdited,
    SessionError,
    SessionStatusIdle,
    SessionUpdated,
    ToolResult,
    ToolUse,
    UserMessage,
    WakeDue,
    answered_call,
)
from harness.history import Entry, strangers_in
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from reading.digits import number_of

MOST, USUAL = 50, 20
"""Events of one answer."""
CLIPPED = 1_000
"""Characters of one event among several."""
PAGE = 20_000
"""Characters of one event that is read whole, at a time."""
ANSWER = 30_000
"""Characters of an answer with several."""
_SILENT = ("span.", "session.usage", "x.input_taken")
"""Beginnings of types that are left out unless they are asked for: they say nothing."""


def read_events(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    entries = _without_asides(context.entries)
    one = arguments.get("call") or arguments.get("event")
    text = _whole(entries, one, arguments.get("offset", 0)) if one else _slice(entries, arguments)
    source = _foreign(context, entries)
    return ToolOutput(text, untrusted_by=source, untrusted=bool(source))


def _without_asides(entries: Sequence[Entry]) -> list[Entry]:
    """What was set aside comes into no prompt, by this road neither."""
    aside = {entry.event.event_id for entry in entries if isinstance(entry.event, ContentSetAside)}
    return [entry for entry in entries if not aside & _told_in(entry)]


def _told_in(entry: Entry) -> set[str | None]:
    """Ids of the message, or of the call, whose words these are."""
    match entry.event:
        case UserMessage():
            return {entry.uid}
        case MessageEdited(event_id=message):
            return {message}
        case event:
            return {answered_call(event)}


def _foreign(context: ToolContext, entries: Sequence[Entry]) -> str:
    """Also by what it was not told: what waits still, and what checks and graders of its work said."""
    if context.ever_tainted_by:
        return f"{context.ever_tainted_by}, read again"
    source = next(filter(None, map(strangers_in, entries)), "")
    return f"{source}, read in the log" if source else ""


def _whole(entries: Sequence[Entry], uid: str, offset: int) -> str:
    """One event, or a call with its answer, from character `offset` on."""
    about = [entry for entry in entries if entry.uid == uid or answered_call(entry.event) == uid]
    if not about:
        raise ToolError(f"There is no event {uid} here.", hint="A query or a type finds others.")
    text = "\n".join(f"{_name(entry)}\n{words_of(entry.event)}" for entry in about)
    page = text[offset : offset + PAGE]
    left = len(text) - offset - len(page)
    return f"{page}\n[{left:,} characters follow: offset {offset + PAGE}.]" if left > 0 else page


def _slice(entries: Sequence[Entry], arguments: Mapping[str, Any]) -> str:
    limit = arguments.get("limit", USUAL)
    chosen = [entry for entry in entries if _is_asked_for(entry, arguments)]
    from_end = True
    for key in ("before", "after", "around"):
        if key not in arguments:
            continue
        seq = _place(entries, arguments[key])
        if key == "before":
            chosen = [entry for entry in chosen if entry.seq < seq]
        elif key == "after":
            chosen = [entry for entry in chosen if entry.seq > seq]
            from_end = False
        else:
            nearest = sorted(chosen, key=lambda entry: abs(entry.seq - seq))[:limit]
            chosen = sorted(nearest, key=lambda entry: entry.seq)
    if "turn" in arguments:
        first, behind = _turn(entries, _place(entries, arguments["turn"]))
        chosen = [entry for entry in chosen if first <= entry.seq < behind]
        from_end = False
    shown = chosen[-limit:] if from_end else chosen[:limit]
    return _told(shown, len(chosen))


def _told(shown: Sequence[Entry], found: int) -> str:
    if not shown:
        return "No event fits."
    lines: list[str] = []
    room = ANSWER
    for entry in shown:
        words = words_of(entry.event)
        if len(words) > CLIPPED:
            words = f"{words[:CLIPPED]} [… {len(words) - CLIPPED:,} more; event {entry.uid}]"
        room -= len(words) + 60
        if room < 0:
            lines.append(f"[Further on: after {lines and shown[len(lines) - 1].uid}.]")
            break
        lines.append(f"{_name(entry)} {words}")
    if found > len(shown):
        lines.append(f"[{len(shown)} of {found} that fit.]")
    return "\n".join(lines)


def _is_asked_for(entry: Entry, arguments: Mapping[str, Any]) -> bool:
    types = arguments.get("types")
    if types:
        if entry.event.type not in types:
            return False
    elif entry.event.type.startswith(_SILENT):
        return False
    query = str(arguments.get("query") or "").casefold()
    return not query or query in words_of(entry.event).casefold()


def _place(entries: Sequence[Entry], named: str) -> int:
    """The number of an event that is named by its id or its number."""
    if (seq := number_of(named)) is not None:
        return seq
    for entry in entries:
        if entry.uid == named:
            return entry.seq
    raise ToolError(f"There is no event {named} here.", hint="Give its id or its number.")


def _turn(entries: Sequence[Entry], seq: int) -> tuple[int, int]:
    """Where the turn begins that an event is in, and the next one."""
    starts = [
        entry.seq
        for entry in entries
        if isinstance(entry.event, InputTaken) and not entry.event.steered
    ]
    first = max((start for start in starts if start <= seq), default=0)
    behind = min((start for start in starts if start > seq), default=2**62)
    return first, behind


def _name(entry: Entry) -> str:
    return f"#{entry.seq} {entry.uid} {entry.event.type}:"


def words_of(event: Event) -> str:
    """What it says, as it is read again: of what no agent is told nothing that others may have said."""
    match event:
        case UserMessage() | MessageEdited() | AgentMessage():
            return _text(event.content)
        case AgentThinking():
            return event.thinking
        case AgentThreadContextCompacted():
            return event.summary
        case AppEvent():
            return event.to_agent()
        case SessionStatusIdle():
            return event.stop_reason.type
        case SessionError() | ApprovalRequested() | CompactionSkipped() | ContentSetAside():
            return ""  # what a service or a hook said to people may be others' words
        case FeedbackGiven():
            return ""
        case SessionUpdated(made_of=message) if message:
            return ""  # it holds on every branch, and says what a message says that may stand on another
        case WakeDue():
            return f"{event.reason} {event.note}".strip()
        case _ if isinstance(event, ToolUse):
            return f"{event.name} {event.input}"
        case _ if isinstance(event, ToolResult):
            return f"(of {answered_call(event)}) {_text(event.content)}"
        case _:
            return str(event.model_dump(mode="json", exclude={"type"}, exclude_defaults=True))


def _text(content: Sequence[Block]) -> str:
    return "\n".join(
        block.text if isinstance(block, Text) else f"[{block.type}]" for block in content
    )


def _intent(arguments: Mapping[str, Any]) -> str:
    for key in ("query", "call", "event", "around", "before", "after", "turn"):
        if arguments.get(key):
            return f"{key} {arguments[key]}"
    return ""


def _named(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": 200, "description": description}


_PROPERTIES: Mapping[str, Any] = {
    "call": _named("Id of a tool call: it and its whole result."),
    "event": _named("Id of one event, whole."),
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": 1_000_000_000,
        "description": "With call or event: from this character on.",
    },
    "query": _named("Only events that contain these words, exactly."),
    "types": {
        "type": "array",
        "maxItems": 20,
        "items": {"type": "string", "maxLength": 80},
        "description": "Only these, such as user.message, agent.message, agent.tool_result.",
    },
    "before": _named("Id or number of an event: those before it, newest last."),
    "after": _named("Those after it."),
    "around": _named("Those nearest to it."),
    "turn": _named("Id or number of an event: those of its turn."),
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": f"Usually {USUAL}."},
}

TOOLS = (
    Tool(
        name="read_events",
        description=(
            "Read earlier parts of this conversation again, word for word: messages, calls and their "
            "results, also what was summarised, shortened or left out. Without arguments: the newest."
        ),
        input_schema={
            "type": "object",
            "properties": dict(_PROPERTIES),
            "additionalProperties": False,
        },
        handler=read_events,
        effect=Effect.READ,
        idempotent=True,
        intent=_intent,
        output_limit=ANSWER + 5_000,
    ),
)
