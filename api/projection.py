"""From one event of the log to the frames of the chat protocol. Decides nothing and reads no table.

Every frame has `seq` and `at` of its event; where an event makes several frames the last one alone
has `seq`, so that whoever reconnects in between is sent all of them again. What an event alone does
not tell (a call's name, a turn's usage) is asked of `Facts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from harness.content import text_of
from harness.events import (
    AgentCustomToolUse,
    AgentMessage,
    AgentThinking,
    ApprovalVoted,
    BackgroundFinished,
    BackgroundStarted,
    BudgetReached,
    ContentRedacted,
    ContentSetAside,
    EndTurn,
    Event,
    InputTaken,
    MessageEdited,
    MessageWithdrawn,
    Refusal,
    RequiresAction,
    RetriesExhausted,
    Rewound,
    SessionError,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionStatusTerminated,
    SessionUpdated,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SubagentEnded,
    SubagentStarted,
    TodosUpdated,
    ToolResult,
    ToolUse,
    UserMessage,
    UserToolConfirmation,
    answered_call,
)
from teams_app.events import TaskEvent, TeammateStatus

from .incoming import Frame
from .stream import Whole

RESULT_CHARACTERS = 2_000
"""The chat protocol's cut of a result; all of it is in the conversation (`GET /api/conversations/{id}`)."""
COMMAND_CHARACTERS = 80
BACKGROUND_CHARACTERS = 500
"""The chat protocol's cuts of a background command and of what it printed."""
BACKGROUND_STATUS: Mapping[str, str] = {"completed": "completed", "timed_out": "timeout"}
"""The chat protocol knows these two and `error`; `state` says it exactly."""
PLAN_TOOL = "present_plan"
PUBLIC_STATUS: Mapping[type[Any], str] = {
    EndTurn: "completed",
    BudgetReached: "limit",
    Refusal: "refused",
    RetriesExhausted: "failed",
}
"""How a turn ended, by the kind of its stop reason."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One event as the log has it."""

    seq: int
    uid: str
    at: datetime
    event: Event


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call, whatever its kind."""

    uid: str
    name: str
    input: Mapping[str, Any]
    """What a question about it is about: the agent's, or what a person had put in its place."""
    unknown: bool = False
    """It was under way when its process ended; allowing it runs it again."""
    custom: bool = False
    """Its answer comes from outside; nobody is asked for permission."""
    reason: str = ""
    round: int = 0
    """How often it had been asked about."""
    acts_on: Mapping[str, Any] = field(default_factory=dict)
    """Of a call that a rest asks about what the input names, as it was when it was asked; empty where that
    says it all."""
    host: str = ""
    """The machine that it goes to, of a tool that has one."""


class Facts(Protocol):
    def calls(self, uids: Sequence[str]) -> Sequence[CallFacts]:
        """Those of them that are calls, in that order."""

    def asked(self, uids: Sequence[str], at: int) -> Sequence[CallFacts]:
        """The same as a rest at this place of the log asks about them."""

    def usage(self, rest: LoggedEvent) -> Frame:
        """Of the turn that ended with this rest."""

    def files(self) -> Frame:
        """The workspace now."""

    def tasks(self, row: LoggedEvent) -> Sequence[Frame] | None:
        """The board as it is now; None where the log tells of a later change of it, which brings it."""

    def subagent(self, row: LoggedEvent, end: SubagentEnded) -> Frame:
        """What came of it: `agent_type`, `summary`, `tool_count` and `usage`."""

    def redirected(self, rest: LoggedEvent) -> bool:
        """Whether the turn was interrupted by a message that goes next."""

    def plan(self, rest: LoggedEvent) -> str:
        """What the agent said in the turn that ended with this rest while it was to plan only; empty
        where plan mode is off or nothing was said."""

    def request(self, request_id: str) -> Frame | None:
        """What was sent to the model; None where nothing is traced."""

    def response(self, request_id: str, end: SpanModelRequestEnd) -> Frame | None:
        """What came back."""


Framed = Frame | Whole


def frames_of(row: LoggedEvent, facts: Facts) -> list[Framed]:
    """What a client is told of this event; nothing for many of them."""
    frames = _frames(row, facts)
    about = {"id": row.uid, "at": row.at.isoformat()}
    numbered: list[Framed] = []
    for place, frame in enumerate(frames, start=1):
        last = {"seq": row.seq} if place == len(frames) else {}
        if isinstance(frame, Whole):
            extra = {"at": about["at"], **frame.extra, **last}
            numbered.append(Whole(frame.block, frame.kind, frame.text, extra))
        else:
            # The number of a trace's frame pairs request and response.
            place_in_log = {"event_seq": row.seq} if "seq" in frame else last
            numbered.append({**about, **frame, **place_in_log})
    return numbered


def _frames(row: LoggedEvent, facts: Facts) -> Sequence[Framed]:
    event = row.event
    match event:
        case AgentMessage():
            extra: Frame = {"interrupted": True} if event.interrupted else {}
            if event.continues:
                extra["continues"] = event.continues
            return [Whole(row.uid, "text", text_of(event.content), extra)]
        case AgentThinking() if event.thinking:
            extra = {"interrupted": True} if event.interrupted else {}
            return [Whole(row.uid, "thinking", event.thinking, extra)]
        case UserMessage():
            files = {"files": [file.path for file in event.files]} if event.files else {}
            return [{"type": "user_message", "content": text_of(event.content), **files}]
        case MessageEdited():
            said = text_of(event.content)
            return [{"type": "message_edited", "message_id": event.event_id, "content": said}]
        case MessageWithdrawn():
            return [{"type": "message_withdrawn", "message_id": event.event_id}]
        case ContentSetAside():
            return [{"type": "set_aside", "event_id": event.event_id, "reason": event.reason}]
        case ContentRedacted():
            return [{"type": "redacted", "event_id": event.event_id}]
        case Rewound():
            return [{"type": "rewound", "behind": event.behind, "why": event.why}]
        case InputTaken():
            return [
                {
                    "type": "message_taken" if event.steered else "turn_start",
                    "message_ids": list(event.event_ids),
                }
            ]
        case SessionStatusRunning():
            return []
        case SessionStatusIdle():
            return _rest(row, event, facts)
        case SessionStatusRescheduled():
            return [{"type": "rescheduled", "delay_seconds": event.delay_seconds}]
        case SessionStatusTerminated():
            return [{"type": "terminated"}]
        case SessionError():
            problem = event.error
            name = "retrying" if problem.retry_status == "retrying" else "error"
            return [
                {
                    "type": name,
                    "code": problem.code,
                    "message": problem.message,
                    "hint": problem.hint,
                    **({"event_ids": list(problem.event_ids)} if problem.event_ids else {}),
                }
            ]
        case SessionUpdated():
            return _updated(event)
        case TodosUpdated():
            todos = [
                {"content": todo.content, "status": todo.status, "activeForm": todo.active_form}
                for todo in event.todos
            ]
            return [{"type": "todo_update", "todos": todos}]
        case TaskEvent():
            board = facts.tasks(row)
            return [] if board is None else [{"type": "task_update", "tasks": list(board)}]
        case TeammateStatus():
            about = {"name": event.name, "status": event.status}
            joined = {"role": event.role} if event.role else {}
            return [{"type": "teammate_status", **about, **joined}]
        case SubagentStarted():
            return [_begun(event)]
        case SubagentEnded():
            return [
                {
                    "type": "subagent_end",
                    "subagent_id": event.subagent,
                    "tool_use_id": event.tool_use_id,
                    "state": event.state,
                    "elapsed": event.seconds,
                    **facts.subagent(row, event),
                }
            ]
        case UserToolConfirmation():
            return _decision(event, facts)
        case BackgroundStarted():
            said = event.command[:COMMAND_CHARACTERS]
            return [{"type": "background_started", "task_id": event.background_id, "command": said}]
        case BackgroundFinished():
            return [{"type": "background_result", "notifications": [_notification(event)]}]
        case ApprovalVoted():
            about = {"tool_use_id": event.tool_use_id}
            votes = {"allowed": event.allowed, "needed": event.needed}
            return [{"type": "tool_approval_vote", **about, **votes}]
        case SpanModelRequestStart():
            words = "The context is nearly full: older messages are being summarised."
            compacts = event.purpose == "compaction"
            first: list[Frame] = [{"type": "compact", "message": words}] if compacts else []
            sent = facts.request(row.uid)
            return [*first, sent] if sent else first
        case SpanModelRequestEnd():
            came = facts.response(event.model_request_start_id, event)
            return [came] if came else []
        case _ if isinstance(event, ToolUse):
            frame: Frame = {
                "type": "tool_call",
                "tool": event.name,
                "input": event.input,
                "tool_use_id": row.uid,
            }
            if isinstance(event, AgentCustomToolUse):
                frame["custom"] = True
            return [frame]
        case _ if isinstance(event, ToolResult):
            return [_result(event, facts)]
        case _:
            return ()


def _begun(event: SubagentStarted) -> Frame:
    return {
        "type": "subagent_start",
        "subagent_id": event.subagent,
        "tool_use_id": event.tool_use_id,
        "task": event.description,
        "agent_type": event.name,
        "background": event.background,
    }


def _result(event: ToolResult, facts: Facts) -> Frame:
    call_id = answered_call(event) or ""
    found = facts.calls([call_id])
    text = text_of(event.content)
    cut = len(text) > RESULT_CHARACTERS
    return {
        "type": "tool_result",
        "tool": found[0].name if found else "",
        "result": f"{text[:RESULT_CHARACTERS]}…" if cut else text,
        "tool_use_id": call_id,
        "is_error": event.is_error,
        "outcome": getattr(event, "outcome", "error" if event.is_error else "ok"),
        "truncated": cut,
    }


def _notification(event: BackgroundFinished) -> Frame:
    return {
        "task_id": event.background_id,
        "status": BACKGROUND_STATUS.get(event.state, "error"),
        "state": event.state,
        "command": event.command[:COMMAND_CHARACTERS],
        "result": event.tail[-BACKGROUND_CHARACTERS:],
        "exit_code": event.exit_code,
        "output_path": event.output_path,
    }


def _updated(event: SessionUpdated) -> list[Frame]:
    frames: list[Frame] = [
        {"type": f"{feature}_changed", "enabled": enabled}
        for feature, enabled in event.features.items()
    ]
    if event.title is not None:
        frames.append({"type": "title_changed", "title": event.title})
    return frames


def _decision(event: UserToolConfirmation, facts: Facts) -> list[Frame]:
    found = facts.calls([event.tool_use_id])
    name = found[0].name if found else ""
    allowed = event.result == "allow"
    about = {"tool_use_ids": [event.tool_use_id]}
    if name == PLAN_TOOL:
        if allowed:
            return [{"type": "plan_approved", **about}]
        return [{"type": "plan_rejected", "feedback": event.deny_message or "", **about}]
    if allowed:
        # Not `tool_approval_result`: the chat protocol sends that on denial alone.
        return [{"type": "tool_approval_granted", "tools": [name], **about}]
    said = event.deny_message or ""
    return [
        {
            "type": "tool_approval_result",
            "decision": "denied",
            "tools": [name],
            "reason": said,
            **about,
        }
    ]


def _rest(row: LoggedEvent, event: SessionStatusIdle, facts: Facts) -> list[Frame]:
    reason = event.stop_reason
    if isinstance(reason, RequiresAction):
        return questions(row.uid, facts.asked(reason.event_ids, row.seq))
    frames: list[Frame] = []
    details = event.stop_details
    # A failure has said its error before, as an event of its own.
    if details is not None and isinstance(reason, BudgetReached | Refusal):
        said = {"code": details.code, "message": details.message, "hint": details.hint}
        frames.append({"type": "error", **said})
    if not event.interrupted and isinstance(reason, EndTurn) and (plan := facts.plan(row)):
        frames.append({"type": "plan_ready", "plan": plan, "request_id": row.uid})
    redirected = event.interrupted and facts.redirected(row)
    status = "interrupted" if event.interrupted else PUBLIC_STATUS[type(reason)]
    if event.interrupted and not redirected:
        status = "cancelled"
    last: Frame = {
        "type": "interrupted" if redirected else "done",
        "status": status,
        "stop_reason": reason.type,
        "usage": facts.usage(row),
        **facts.files(),
    }
    if details is not None:
        last["details"] = details.model_dump()
    frames.append(last)
    return frames


def questions(request_id: str, calls: Sequence[CallFacts]) -> list[Frame]:
    """What a rest asks people for: one request for all calls of the step, a plan apart."""
    frames: list[Frame] = []
    asked = [call for call in calls if call.name != PLAN_TOOL and not call.custom]
    if asked:
        tools = [
            {
                "name": call.name,
                "input": dict(call.input),
                "id": call.uid,
                "unknown": call.unknown,
                "reason": call.reason,
                **({"acts_on": call.acts_on} if call.acts_on else {}),
                **({"host": call.host} if call.host else {}),
            }
            for call in asked
        ]
        frames.append({"type": "tool_approval_request", "request_id": request_id, "tools": tools})
    for call in calls:
        if call.name == PLAN_TOOL:
            plan = str(call.input.get("plan", ""))
            about = {"request_id": request_id, "tool_use_ids": [call.uid]}
            frames.append({"type": "plan_ready", "plan": plan, **about})
    custom = [
        {"name": call.name, "input": dict(call.input), "id": call.uid}
        for call in calls
        if call.custom
    ]
    if custom:
        frames.append({"type": "tool_result_request", "request_id": request_id, "tools": custom})
    return frames
