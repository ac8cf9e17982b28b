"""With what a model request is booked whose end nobody has heard: its process is gone, or its run broke.

What the log has of the reply counts, and of its prompt our estimate: being lost makes nothing free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.content import Text, text_of
from harness.estimates import CHARACTERS_PER_TOKEN, likely_prompt_tokens
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    Event,
    McpElsewhere,
    ModelUsage,
    SpanModelRequestEnd,
    SpanModelRequestStart,
)
from harness.history import Entry, History
from harness.ports import LiveBlock


def left_behind(history: History, partials: Sequence[tuple[LiveBlock, str]]) -> list[Entry]:
    """What brings in order what a lost or broken run left: text half said, and a request half done."""
    entries = [Entry(block.uid, _half_said(block, text)) for block, text in partials]
    lost = history.open_request
    if lost is not None and isinstance(lost.event, SpanModelRequestStart):
        log = (entry.event for entry in history.entries)
        entries.append(Entry.of(lost_end(lost.uid, lost.event, log, partials)))
    return entries


def _half_said(block: LiveBlock, text: str) -> Event:
    if block.kind == "thinking":
        return AgentThinking(
            thinking=text, model_request_id=block.model_request_id, interrupted=True
        )
    return AgentMessage(
        content=(Text(text=text),),
        model_request_id=block.model_request_id,
        continues=block.continues,
        interrupted=True,
    )


def lost_end(
    uid: str,
    begun: SpanModelRequestStart,
    log: Iterable[Event],
    partials: Iterable[tuple[LiveBlock, str]] = (),
) -> SpanModelRequestEnd:
    """The end of the request `uid` that `begun` says. `log` is at least what is stored behind its start,
    `partials` what had arrived and is not stored in it."""
    # Held back was what documents take at most whose pages nobody counted; most are short.
    unopened, summary = begun.unopened_tokens_at_most, begun.summary_tokens_at_most
    prompt = max(0, begun.prompt_tokens_at_most - summary - unopened)
    characters = sum(len(text) for block, text in partials if block.model_request_id == uid)
    for event in log:
        match event:
            case AgentMessage(model_request_id=request, content=content) if request == uid:
                characters += len(text_of(content))
            case AgentThinking(model_request_id=request, thinking=thinking) if request == uid:
                characters += len(thinking)
            case McpElsewhere(model_request_id=request, block=block) if request == uid:
                characters += len(str(block))
            case AgentThreadContextCompacted(model_request_id=request) if request == uid:
                characters += len(event.summary)
                # The service has read it all for a summary of its own as well.
                prompt += max(0, summary - unopened)
            case _:
                pass
    return SpanModelRequestEnd(
        model_request_start_id=uid,
        model_usage=ModelUsage(
            input_tokens=likely_prompt_tokens(prompt),
            output_tokens=characters // CHARACTERS_PER_TOKEN,
        ),
        is_error=True,
        end="lost",
        estimated=True,
    )
