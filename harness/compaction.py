"""Makes room: summarises the older part of a conversation when the context window fills up.

Adds one event and deletes none; `transcript` reads it. When the summariser fails, a note says that
messages were dropped, and the work goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.content import Text
from harness.events import AgentThreadContextCompacted, SpanModelRequestStart
from harness.history import Entry
from harness.messages import Message, ModelRequest, Thinking, ToolAnswer, ToolCall
from harness.texts import Texts
from harness.transcript import build_messages, remembered

KEEP_REQUESTS = 3
"""Model requests at the end of the log whose exchange stays verbatim."""
PIECE_CHARACTERS = 2_000
"""Of one text or result in the rendering that the summariser reads; more is cut in the middle."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where to cut, and what the summary has to stand for."""

    through: str
    messages: tuple[Message, ...]


def find_cut(entries: Sequence[Entry], texts: Texts) -> Cut | None:
    """The place right before the last few main requests; None when there is too little to cut.

    A request's start is a clean edge: every call before it has its answer before it.
    """
    entries = remembered(entries)
    since = 0
    for index, entry in enumerate(entries):
        if isinstance(entry.event, AgentThreadContextCompacted):
            since = index + 1
    starts = [
        index
        for index, entry in enumerate(entries)
        if index >= since
        and isinstance(entry.event, SpanModelRequestStart)
        and entry.event.purpose == "main"
    ]
    if len(starts) <= KEEP_REQUESTS:
        return None
    edge = starts[-KEEP_REQUESTS]
    through = entries[edge - 1]
    messages = build_messages(entries[:edge], texts=texts)
    return Cut(through.uid, messages) if messages else None


def summary_request(
    cut: Cut, *, texts: Texts, model: str, output_tokens: int, room_tokens: int
) -> ModelRequest:
    """The request that asks for the summary; its text is cut to `room_tokens` keeping both ends."""
    rendering = clip("\n\n".join(render(message) for message in cut.messages), room_tokens * 3)
    return ModelRequest(
        model=model,
        system=texts.compaction_request,
        messages=(Message("user", (Text(text=rendering),)),),
        max_output_tokens=output_tokens,
        purpose="compaction",
    )


def compacted(cut: Cut, summary: str) -> AgentThreadContextCompacted:
    return AgentThreadContextCompacted(
        summary=summary, through=cut.through, messages=len(cut.messages)
    )


def dropped(cut: Cut, texts: Texts) -> AgentThreadContextCompacted:
    """What stands for the cut part when it could not be summarised."""
    count = len(cut.messages)
    return AgentThreadContextCompacted(
        summary=texts.compaction_fallback.format(messages=count),
        through=cut.through,
        messages=count,
        fallback=True,
    )


def render(message: Message) -> str:
    lines: list[str] = []
    for part in message.parts:
        match part:
            case Text():
                lines.append(clip(part.text, PIECE_CHARACTERS))
            case ToolCall():
                lines.append(f"[calls {part.name} with {clip(str(dict(part.input)), 500)}]")
            case ToolAnswer():
                text = "\n".join(block.text for block in part.content if isinstance(block, Text))
                lines.append(f"[result: {clip(text, 500)}]")
            case Thinking():
                continue
            case _:
                lines.append(f"[{part.type}]")
    return f"{message.role}:\n" + "\n".join(lines)


def clip(text: str, characters: int) -> str:
    """`text`, its middle left out if it is longer; both ends of a long talk matter."""
    if len(text) <= characters:
        return text
    half = characters // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out} characters left out …]\n{text[-half:]}"
