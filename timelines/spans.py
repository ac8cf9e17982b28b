"""What took how long in a turn, read from the events of a log. Pure: it asks nobody and measures nothing.

Events are stored before and after whatever they tell of, so their times are those of the work. Reading tables
is `reading`'s, drawing `views`', sending `otlp`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.events import (
    AgentMcpToolUse,
    AppEvent,
    CallHandedOut,
    Event,
    InputTaken,
    RequiresAction,
    RetryRequested,
    SessionError,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    SpanToolEnd,
    SpanToolStart,
    SubagentEnded,
    SubagentStarted,
    ToolUse,
    UserToolConfirmation,
    answered_call,
)
from harness.history import Entry

Kind = Literal["turn", "model", "tool", "wait", "child", "judging", "hook"]


@dataclass(slots=True)
class Span:
    """A stretch of work, or of waiting."""

    uid: str
    """Of the event with which it begins, and for a wait a word before it: the same at every reading."""
    kind: Kind
    name: str
    start: float
    """Seconds since 1970."""
    end: float | None = None
    """None: not yet, as far as was read."""
    failed: str = ""
    """Why, in a word; empty: it did not fail, as far as is known."""
    facts: dict[str, str | int] = field(default_factory=dict)
    """By the names of OpenTelemetry's conventions for generative AI; never what was said."""
    spans: list[Span] = field(default_factory=list)
    """What it consists of, in the order of their beginnings."""
    child: str = ""
    """The id of the conversation that does the work, of a `child`."""


def begins_turn(event: Event) -> bool:
    """Whether it is what `History` takes for the beginning of a turn."""
    if isinstance(event, InputTaken):
        return not event.steered
    return isinstance(event, RetryRequested)


def ends_turn(event: Event) -> bool:
    return isinstance(event, SessionStatusIdle) and not isinstance(
        event.stop_reason, RequiresAction
    )


def turn_of(entries: Iterable[Entry]) -> Span | None:
    """The turn that the first of these events begins, up to its end or the next one's beginning."""
    return _Reader().read(entries)


class _Reader:
    def __init__(self) -> None:
        self.turn: Span | None = None
        self.open: dict[str, Span] = {}
        """By the id by which their end is told."""
        self.calls: dict[str, ToolUse] = {}
        self.waits: dict[str, Span] = {}
        self.last = 0.0

    def read(self, entries: Iterable[Entry]) -> Span | None:
        for entry in entries:
            if self.turn is None:
                self.turn = Span(entry.uid, "turn", "turn", entry.at)
                self.last = entry.at
                continue
            if begins_turn(entry.event):
                break
            self.last = entry.at
            self._add(entry)
            if ends_turn(entry.event):
                self.turn.end = entry.at
                break
        if self.turn is not None and self.turn.end is not None:
            for span in (*self.open.values(), *self.waits.values()):
                span.end = self.turn.end if span.end is None else span.end
        return self.turn

    def _add(self, entry: Entry) -> None:
        event, at = entry.event, entry.at
        match event:
            case SpanModelRequestStart():
                self._begin(entry.uid, "model", f"chat {event.model}".strip(), entry)
                self.open[entry.uid].facts |= {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": event.provider,
                    "gen_ai.request.model": event.model,
                    "agentsite.purpose": event.purpose,
                }
            case SpanModelRequestEnd():
                self._end_request(event, at)
            case SpanOutcomeEvaluationStart():
                self._begin(entry.uid, "judging", "judge the outcome", entry)
            case SpanOutcomeEvaluationEnd():
                span = self.open.pop(event.outcome_evaluation_start_id, None)
                if span is not None:
                    span.end = at
                    span.facts["agentsite.result"] = event.result
            case SpanToolStart() | CallHandedOut():
                self._begin_call(event.tool_use_id, entry)
            case SpanToolEnd():
                span = self.open.get(event.tool_use_id)
                if span is not None:
                    span.end = at
                    span.failed = "error" if event.is_error else ""
            case UserToolConfirmation():
                wait = self.waits.pop(event.tool_use_id, None)
                if wait is not None:
                    wait.end = at
            case SubagentStarted():
                self._begin(event.subagent, "child", f"invoke_agent {event.name}", entry)
                span = self.open[event.subagent]
                span.child = event.subagent
                span.facts |= {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": event.name,
                }
            case SubagentEnded():
                span = self.open.pop(event.subagent, None)
                if span is not None:
                    span.end = at
                    span.failed = "" if event.state == "completed" else event.state
            case SessionStatusIdle() if isinstance(event.stop_reason, RequiresAction):
                self._begin("rest", "wait", "rest", entry)
            case SessionStatusRunning():
                rest = self.open.pop("rest", None)
                if rest is not None:
                    rest.end = at
            case SessionError():
                assert self.turn is not None  # noqa: S101 - the first event made it
                self.turn.failed = event.error.code
            case AppEvent() if asked := event.asked():
                self._add_asked(entry, asked)
            case _ if isinstance(event, ToolUse):
                self.calls[entry.uid] = event
                if getattr(event, "evaluated_permission", "") == "ask":
                    self._begin(f"wait:{entry.uid}", "wait", f"approval {event.name}", entry)
                    self.waits[entry.uid] = self.open.pop(f"wait:{entry.uid}")
            case _ if (call := answered_call(event)) is not None:
                self._answer(call, event, at)

    def _add_asked(self, entry: Entry, asked: Sequence[tuple[str, int, str]]) -> None:
        """They ended when it was stored; what they took is known by the one who asked."""
        assert self.turn is not None  # noqa: S101 - the first event made it
        start = max(entry.at - sum(took for _name, took, _why in asked) / 1_000, self.turn.start)
        for number, (name, took, failed) in enumerate(asked):
            end = min(start + took / 1_000, entry.at)
            uid = f"hook:{number}:{entry.uid}"
            self.turn.spans.append(Span(uid, "hook", f"hook {name}", start, end, failed))
            start = end
        # Asked behind a call they began before what was stored last.
        self.turn.spans.sort(key=lambda span: span.start)

    def _begin(self, key: str, kind: Kind, name: str, entry: Entry) -> None:
        assert self.turn is not None  # noqa: S101 - the first event made it
        uid = f"{kind}:{entry.uid}" if kind in {"wait", "child"} else entry.uid
        span = Span(uid, kind, name, entry.at)
        within = getattr(self.calls.get(key), "within", "")
        above = self.open.get(within, self.turn) if within else self.turn
        above.spans.append(span)
        self.open[key] = span

    def _begin_call(self, call: str, entry: Entry) -> None:
        use = self.calls.get(call)
        name = use.name if use is not None else "tool"
        self._begin(call, "tool", f"execute_tool {name}", entry)
        facts: dict[str, str | int] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call,
        }
        if isinstance(use, AgentMcpToolUse):
            facts |= {"mcp.method.name": "tools/call", "agentsite.mcp.server": use.mcp_server_name}
        self.open[call].facts |= facts

    def _answer(self, call: str, event: Event, at: float) -> None:
        wait = self.waits.pop(call, None)
        if wait is not None:
            wait.end = at
        span = self.open.pop(call, None)
        if span is None:
            return
        span.end = at if span.end is None else span.end
        outcome = str(getattr(event, "outcome", "") or "")
        if getattr(event, "is_error", False):
            span.failed = outcome or "error"

    def _end_request(self, event: SpanModelRequestEnd, at: float) -> None:
        span = self.open.pop(event.model_request_start_id, None)
        if span is None:
            return
        usage = event.model_usage
        span.end = at
        span.failed = (event.end or "error") if event.is_error else ""
        span.facts |= {
            "gen_ai.usage.input_tokens": usage.input_tokens
            + usage.cache_read_input_tokens
            + usage.cache_creation_input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.response.finish_reasons": event.end,
        }
        if event.first_delta_milliseconds is not None:
            span.facts["agentsite.first_delta_ms"] = event.first_delta_milliseconds
        if event.cached:
            span.facts["agentsite.cached"] = 1
