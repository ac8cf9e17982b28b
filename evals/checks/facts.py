"""What a run is known by: facts read from its log, and what was looked up beside it. Pure values.

Checks are functions over these (`checks.judging`). Files, commands, money and judges' words are not in the
log; whoever collects them adds them (`evals.collecting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from harness.content import text_of
from harness.events import (
    AgentCustomToolUse,
    AgentMessage,
    SessionStatusIdle,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    ToolResult,
    ToolUse,
    UserMessage,
    answered_call,
)
from harness.history import Entry


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    input: Mapping[str, Any]
    asked: bool = False
    """It asked a person."""
    denied: bool = False
    """It was kept from running."""
    is_error: bool = False
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ran behind the agent's work."""

    exit_code: int | None
    output: str = ""
    problem: str = ""
    """Why it could not run, or did not come to its own end."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one judge said."""

    points: float | None
    """Of a preference: 1 for the answer, 0 for the other one, ½ for neither. None: it cannot be read."""
    reason: str = ""


@dataclass(slots=True)
class Looking:
    """What looking for expressions may still take, in all checks of one run together: they are looked for
    while its rows are held, on SQLite with everybody's."""

    left: int = 500_000_000
    """Parts of an expression, times characters of a text."""


@dataclass(frozen=True, slots=True)
class Facts:
    question: str = ""
    """What was said last."""
    answer: str = ""
    said: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    stop: str = ""
    """The stop reason's type of the last rest."""
    stop_words: str = ""
    steps: int = 0
    """Main model requests."""
    model_calls: int = 0
    """Of every purpose that a service was asked for."""
    cached_calls: int = 0
    """Those that a cache answered."""
    seconds: float = 0.0
    """That models and tools worked, as the log has them."""
    cost: Decimal | None = Decimal(0)
    """US dollars as without a cache; None: a model has no price."""
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    """Of the paths that checks name; None: there is none."""
    commands: Mapping[int, Ran] = field(default_factory=dict)
    """By the place of their checks."""
    verdicts: Mapping[int, tuple[Verdict, ...]] = field(default_factory=dict)
    looking: Looking = field(default_factory=Looking, compare=False, repr=False)


def facts_of(entries: Iterable[Entry], *, after: int = 0) -> Facts:
    """What the log says. `after`: the number of the last event of a recorded beginning, which is not the
    run's own work."""
    question, stop, words = "", "", ""
    said: list[str] = []
    calls: dict[str, Call] = {}
    steps = asked = cached = 0
    seconds = 0.0
    began: dict[str, Entry] = {}
    for entry in entries:
        if entry.seq <= after:
            continue
        match entry.event:
            case UserMessage(content=content):
                question = text_of(content)
            case AgentMessage(content=content, continues=continues):
                text = text_of(content)
                if continues and said:
                    said[-1] += text
                else:
                    said.append(text)
            case SpanModelRequestStart():
                began[entry.uid] = entry
            case SpanModelRequestEnd() as end:
                start = began.get(end.model_request_start_id)
                main = start is not None and getattr(start.event, "purpose", "") == "main"
                steps += main
                asked += not end.cached
                cached += end.cached
            case SessionStatusIdle(stop_reason=reason, stop_details=details):
                stop, words = reason.type, details.message if details else ""
                if began:
                    seconds += max(0.0, entry.at - min(each.at for each in began.values()))
                    began = {}
            case event if isinstance(event, ToolUse):
                permission = (
                    "allow" if isinstance(event, AgentCustomToolUse) else event.evaluated_permission
                )
                calls[entry.uid] = Call(
                    event.name, event.input, asked=permission == "ask", denied=permission == "deny"
                )
            case event if isinstance(event, ToolResult):
                call = answered_call(event)
                if call in calls:
                    calls[call] = _answered(calls[call], event)
    return Facts(
        question=question,
        answer=said[-1] if said else "",
        said=tuple(said),
        calls=tuple(calls.values()),
        stop=stop,
        stop_words=words,
        steps=steps,
        model_calls=asked,
        cached_calls=cached,
        seconds=round(seconds, 3),
    )


def _answered(call: Call, result: ToolResult) -> Call:
    outcome = getattr(result, "outcome", "ok")
    return Call(
        call.name,
        call.input,
        asked=call.asked,
        denied=call.denied or outcome == "denied",
        is_error=bool(result.is_error),
        answered=True,
    )
