"""The log as AG-UI tells it: events of a conversation in, events of one AG-UI run out.

Pure: what a rest waits for is read from the tables by `following`, frames are made by `door`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Interrupt,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from harness.content import Block, text_of
from harness.events import (
    AgentCustomToolUse,
    AgentMcpToolUse,
    AgentMessage,
    AgentThinking,
    AgentToolUse,
    ApprovalVoted,
    McpElsewhere,
    SessionError,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionUpdated,
    SpanModelRequestEnd,
    SubagentStarted,
    TodosUpdated,
    ToolResult,
    ToolUse,
    answered_call,
    dump,
)
from harness.events import Event as EventValue

from .activities import activity

VERSION = "1.0"
CUSTOM = "agentsite."
"""How the names of our own CUSTOM events begin; then comes the type of the log's event."""
FAILED = {"retries_exhausted", "budget_reached", "refusal"}


@dataclass(frozen=True, slots=True)
class Subagent:
    """A conversation that this one started and that waits for the answers to calls of its own."""

    uid: str
    name: str
    """Of its agent."""
    interrupt_ids: Sequence[str]
    calls: Sequence[tuple[str, ToolUse]]


class Projection:
    """One run, told in order: `started`, then what happens, then `finished` or `failed`."""

    def __init__(self, thread_id: str, run_id: str, state: Mapping[str, Any] | None = None) -> None:
        self._thread_id = thread_id
        self._run_id = run_id
        self._state = state or {}
        """What is held of the client's own state."""
        self._entered = False
        self._held: dict[str, str] = {}
        """Text that is arriving, by message."""
        self._sent: dict[str, int] = {}
        """Characters of it that were told; messages that are open."""
        self._input_tokens = 0
        self._output_tokens = 0

    def started(self) -> list[BaseEvent]:
        events: list[BaseEvent] = [
            RunStartedEvent(
                thread_id=self._thread_id, run_id=self._run_id, protocol_version=VERSION
            )
        ]
        if self._state:
            events.append(StateSnapshotEvent(snapshot=self._state))
        return events

    def enter(self) -> None:
        """From here on what arrives belongs to this run."""
        self._entered = True

    def arriving(self, message_id: str, text: str) -> list[BaseEvent]:
        """More of a message that is not in the log yet."""
        self._held[message_id] = self._held.get(message_id, "") + text
        if not self._entered:
            return []
        return self._grow(message_id, self._held[message_id])

    def happened(
        self,
        uid: str,
        value: EventValue,
        began: SubagentStarted | None = None,
        came: Mapping[str, Any] | None = None,
    ) -> list[BaseEvent]:
        """What an event is told as; `began` and `came` of a subagent that has ended."""
        match value:
            case AgentMessage():
                self._held.pop(uid, None)
                events = self._grow(uid, text_of(value.content))
                return [*events, *self._close(uid)]
            case AgentThinking(thinking=thinking):
                return _reasoning(uid, thinking) if thinking else []
            case AgentToolUse() | AgentMcpToolUse() | AgentCustomToolUse():
                return _call(uid, value)
            case _ if isinstance(value, ToolResult):
                return [
                    ToolCallResultEvent(
                        message_id=uid,
                        tool_call_id=answered_call(value) or uid,
                        content=_words(value.content),
                        role="tool",
                        metadata={"is_error": value.is_error},
                    )
                ]
            case TodosUpdated():
                # It takes the place of all that the client has.
                return [StateSnapshotEvent(snapshot={**self._state, "todos": dump(value)["todos"]})]
            case SpanModelRequestEnd(model_usage=usage):
                self._input_tokens += (
                    usage.input_tokens
                    + usage.cache_read_input_tokens
                    + usage.cache_creation_input_tokens
                )
                self._output_tokens += usage.output_tokens
                return []
            case (
                SessionError()
                | SessionStatusRescheduled()
                | SessionUpdated()
                | ApprovalVoted()
                | McpElsewhere()
            ):
                body = {name: item for name, item in dump(value).items() if name != "type"}
                return [CustomEvent(name=f"{CUSTOM}{value.type.removeprefix('x.')}", value=body)]
            case _:
                return activity(value, began, came)

    def rested(
        self,
        rest: SessionStatusIdle,
        interrupts: Sequence[Interrupt],
        below: Sequence[Subagent] = (),
        pending: Sequence[str] = (),
    ) -> list[BaseEvent]:
        """The last events of a run whose turn rests, waiting for `interrupts` if there are any, and for
        the results of `pending` calls, which are the client's own."""
        if rest.interrupted:
            return self.cancelled()
        if rest.stop_reason.type in FAILED:
            details = rest.stop_details
            words = details.words if details else ""
            return self.failed(
                words or rest.stop_reason.type,
                (details.code if details else "") or rest.stop_reason.type,
            )
        return self.waiting(interrupts, below, pending)

    def waiting(
        self,
        interrupts: Sequence[Interrupt],
        below: Sequence[Subagent] = (),
        pending: Sequence[str] = (),
    ) -> list[BaseEvent]:
        """The last events of a run that leaves these open; no interrupts: it has succeeded."""
        if not interrupts:
            left = list(pending) or None
            return self._finish(RunFinishedSuccessOutcome(pending_tool_call_ids=left))
        shown = [event for subagent in below for event in _suspended(subagent)]
        return [*shown, *self._finish(RunFinishedInterruptOutcome(interrupts=list(interrupts)))]

    def cancelled(self) -> list[BaseEvent]:
        return self._finish(RunFinishedCancelledOutcome())

    def failed(self, message: str, code: str) -> list[BaseEvent]:
        return [
            *self._close_all(),
            RunErrorEvent(message=message, code=code, usage=self._usage()),
        ]

    def _finish(self, outcome: Any) -> list[BaseEvent]:
        return [
            *self._close_all(),
            RunFinishedEvent(
                thread_id=self._thread_id,
                run_id=self._run_id,
                outcome=outcome,
                usage=self._usage(),
            ),
        ]

    def _usage(self) -> list[TokenUsage] | None:
        if not (self._input_tokens or self._output_tokens):
            return None
        return [TokenUsage(input_tokens=self._input_tokens, output_tokens=self._output_tokens)]

    def _grow(self, message_id: str, whole: str) -> list[BaseEvent]:
        events: list[BaseEvent] = []
        known = self._sent.get(message_id)
        if known is None:
            known = 0
            events.append(TextMessageStartEvent(message_id=message_id, role="assistant"))
        if new := whole[known:]:
            events.append(TextMessageContentEvent(message_id=message_id, delta=new))
        self._sent[message_id] = max(known, len(whole))
        return events

    def _close(self, message_id: str) -> list[BaseEvent]:
        del self._sent[message_id]
        return [TextMessageEndEvent(message_id=message_id)]

    def _close_all(self) -> list[BaseEvent]:
        """A reply that broke off has no message in the log; a run leaves none open."""
        return [event for message_id in list(self._sent) for event in self._close(message_id)]


def _reasoning(uid: str, thinking: str) -> list[BaseEvent]:
    return [
        ReasoningStartEvent(message_id=uid),
        ReasoningMessageStartEvent(message_id=uid, role="reasoning"),
        ReasoningMessageContentEvent(message_id=uid, delta=thinking),
        ReasoningMessageEndEvent(message_id=uid),
        ReasoningEndEvent(message_id=uid),
    ]


def _call(uid: str, use: ToolUse, subagent: str | None = None) -> list[BaseEvent]:
    arguments = json.dumps(use.input, ensure_ascii=False)
    return [
        ToolCallStartEvent(tool_call_id=uid, tool_call_name=use.name, subagent_run_id=subagent),
        ToolCallArgsEvent(tool_call_id=uid, delta=arguments, subagent_run_id=subagent),
        ToolCallEndEvent(tool_call_id=uid, subagent_run_id=subagent),
    ]


def _suspended(subagent: Subagent) -> list[BaseEvent]:
    outcome = SubagentFinishedSuspendedOutcome(interrupt_ids=list(subagent.interrupt_ids))
    return [
        SubagentStartedEvent(subagent_run_id=subagent.uid, name=subagent.name),
        *(event for uid, use in subagent.calls for event in _call(uid, use, subagent.uid)),
        SubagentFinishedEvent(subagent_run_id=subagent.uid, outcome=outcome),
    ]


def _words(content: tuple[Block, ...]) -> str:
    """As text alone: an image or a document is named, not sent."""
    others = [f"[{block.type}]" for block in content if block.type != "text"]
    return "\n\n".join(part for part in (text_of(content), *others) if part)
