"""Makes room: summarises the older part of a conversation when the context window fills up.

Adds one event and deletes none; `transcript` reads it, with what `keepsakes` says stays word for word. When
the summariser fails, a note says that messages were dropped, and the work goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.content import Text
from harness.events import (
    AgentThreadContextCompacted,
    InputTaken,
    ModelUsage,
    SpanModelRequestStart,
)
from harness.history import Entry
from harness.messages import Elsewhere, Message, ModelRequest, Thinking, ToolAnswer, ToolCall
from harness.texts import Texts
from harness.transcript import Window, build_messages, remembered

KEEP_REQUESTS = 3
"""Model requests at the end of the log whose exchange stays verbatim where it fits; at least one does."""
KEEP_TURN = 8
"""A turn that begins so few requests before the end stays whole."""
PIECE_CHARACTERS = 2_000
"""Of one text or result in the rendering that the summariser reads; more is cut in the middle."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where to cut, and what the summary has to stand for."""

    through: str
    messages: tuple[Message, ...]


def find_cut(
    entries: Sequence[Entry],
    texts: Texts,
    *,
    window: Window | None = None,
    fits: Callable[[Sequence[Message]], bool] = lambda _messages: True,
) -> Cut | None:
    """The place right before the last few main requests, or before the turn that they belong to where it is
    a short one; None when there is too little to cut.

    `fits` says of the dialogue behind a cut, still without its summary, whether it is short enough; what the
    last request brought stays in any case. A request's start is a clean edge: every call before it has its
    answer before it.
    """
    entries = remembered(entries)
    for edge in _edges(entries):
        through = entries[edge.index - 1].uid
        behind = Entry.of(AgentThreadContextCompacted(summary="", through=through))
        if edge.last or fits(build_messages([*entries, behind], texts=texts, window=window)):
            messages = build_messages(entries[: edge.index], texts=texts, window=window)
            return Cut(through, messages) if messages else None
    return None


@dataclass(frozen=True, slots=True)
class _Edge:
    index: int
    last: bool = False
    """There is none that cuts more."""


def _edges(entries: Sequence[Entry]) -> Iterator[_Edge]:
    """Where one may cut, the one that keeps most first."""
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
    if len(starts) > KEEP_REQUESTS:
        first = starts[-KEEP_TURN] if len(starts) > KEEP_TURN else starts[0]
        for index in range(first + 1, starts[-KEEP_REQUESTS]):
            event = entries[index].event
            if isinstance(event, InputTaken) and not event.steered:
                yield _Edge(index)
                break
    for kept in range(min(KEEP_REQUESTS, len(starts) - 1), 0, -1):
        yield _Edge(starts[-kept], last=kept == 1)


def summary_request(
    cut: Cut, *, texts: Texts, model: str, output_tokens: int, room_tokens: int, focus: str = ""
) -> ModelRequest:
    """The request that asks for the summary; its text is cut to `room_tokens` keeping both ends. `focus` is
    what the summary is to dwell on."""
    room = room_tokens * 3
    pieces = [render(message, texts.compaction_preamble) for message in cut.messages]
    system = texts.compaction_request
    if focus:
        system = f"{system}\n\n{texts.compaction_focus.format(focus=focus)}"
    return ModelRequest(
        model=model,
        system=system,
        messages=(Message("user", (Text(text=clip("\n\n".join(pieces), room)),)),),
        max_output_tokens=output_tokens,
        purpose="compaction",
    )


def compacted(
    cut: Cut,
    summary: str,
    *,
    focus: str = "",
    tokens: int = 0,
    request: str = "",
    usage: ModelUsage | None = None,
) -> AgentThreadContextCompacted:
    """What stands for the cut part. `tokens` is how large the prompt was before; `request` the id of the
    model request that wrote the summary, with what that used."""
    return AgentThreadContextCompacted(
        summary=summary,
        through=cut.through,
        messages=len(cut.messages),
        focus=focus,
        tokens_before=tokens,
        model_request_id=request,
        usage=usage,
    )


def dropped(
    cut: Cut, texts: Texts, *, tokens: int = 0, reread: str = ""
) -> AgentThreadContextCompacted:
    """What stands for the cut part when it could not be summarised."""
    count = len(cut.messages)
    note = texts.compaction_fallback.format(messages=count)
    return AgentThreadContextCompacted(
        summary=f"{note} {reread}".rstrip(),
        through=cut.through,
        messages=count,
        fallback=True,
        tokens_before=tokens,
    )


def render(message: Message, summary: str = "") -> str:
    """The message as the summariser reads it. A text that begins with `summary` is one from before, and
    stays whole: what it says stands nowhere else."""
    lines: list[str] = []
    for part in message.parts:
        match part:
            case Text() if summary and part.text.startswith(summary):
                lines.append(part.text)
            case Text():
                lines.append(clip(part.text, PIECE_CHARACTERS))
            case ToolCall():
                lines.append(f"[calls {part.name} with {clip(str(dict(part.input)), 500)}]")
            case ToolAnswer():
                text = "\n".join(block.text for block in part.content if isinstance(block, Text))
                lines.append(f"[result: {clip(text, 500)}]")
            case Elsewhere():
                words = part.block.get("content") or dict(part.block)
                lines.append(f"[run by the model's service: {clip(str(words), 500)}]")
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
