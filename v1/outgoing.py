"""The log as clients of `/v1` read it: one row is one event, or none.

The public vocabulary is a closed union for strict clients, so whatever it lacks (`x.…`, and spans of
tools) goes only to who asked for it. What we add to an event has the prefix `x_`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.models import User
from conversations.actedon import acted_on as told_of_calls
from conversations.models import Conversation, Event
from harness.agentconfig import STORED, AgentConfig
from harness.content import Block
from harness.events import (
    WAITS_FOR_SUBAGENTS,
    AgentCustomToolUse,
    AgentMcpToolResult,
    AgentMcpToolUse,
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AgentToolResult,
    AgentToolUse,
    Refusal,
    RequiresAction,
    SessionError,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionStatusTerminated,
    SessionThreadCreated,
    SessionUpdated,
    SessionUsage,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    UserCustomToolResult,
    UserDefineOutcome,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
    UserToolResult,
)
from harness.events import Event as EventValue
from harness.frontends import FrontEnd
from harness.grading import explanation_of
from subagents.models import Subagent
from wire.ids import thread_id

from .agents import ConfiguredAgent, session_agent
from .publictools import public_call
from .threadevents import PUBLISHED, name_on_wire, told_of_threads

OURS = ("x.", "span.tool_")
"""How types begin that the public vocabulary does not have."""

STATUS, THREAD_STATUS = "session.status_", "session.thread_status_"
"""How the types of a status begin: of a session, and of a thread in its own list and stream."""

ERROR_TYPES = frozenset(
    {
        "model_overloaded_error",
        "model_rate_limited_error",
        "model_request_failed_error",
        "billing_error",
    }
)
"""Those that have no fields of their own; any other is the documented fallback."""

Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation that an agent started, as its own events name it."""

    id: str
    agent_name: str
    parent: str
    """The id of the thread above."""

    @classmethod
    def of(cls, conversation: Conversation) -> Thread | None:
        """None for a session, whose events are its own."""
        if conversation.parent is None:
            return None
        asked = Subagent.objects.filter(child=conversation).order_by("-pk").first()
        name = asked.kind if asked is not None else conversation.agent_version.agent.name
        above = thread_id(conversation.parent.uid)
        return cls(thread_id(conversation.uid), name_on_wire(name), above)


def wire_events(
    rows: Iterable[Event], *, reader: User, ours: bool = False, thread: Thread | None = None
) -> list[Wire]:
    """Those of `rows` that the client is to see, in their order."""
    rows = list(rows)
    acts = acted_on(rows, reader)
    return [
        event
        for row in rows
        for event in wire_events_of(row, reader=reader, ours=ours, thread=thread, acts=acts)
    ]


def acted_on(rows: Sequence[Event], reader: User) -> Mapping[str, Wire]:
    """By the ids of calls among `rows`, which are of one conversation, what those act on that were asked
    about, as this reader may see it. By the ids of rests, the same of each call that they wait for and that
    was asked about anew since it was told: what it acts on may be another thing by then."""
    calls = {row.uid: row.payload["name"] for row in rows if row.type == "agent.tool_use"}
    rests = {
        row.uid: row.payload["stop_reason"]["event_ids"]
        for row in rows
        if row.type == "session.status_idle"
        and row.payload["stop_reason"]["type"] == "requires_action"
    }
    return told_of_calls(reader, rows[0].conversation_id, calls, rests) if rows else {}


def wire_events_of(
    row: Event,
    *,
    reader: User,
    ours: bool = False,
    thread: Thread | None = None,
    acts: Mapping[str, Wire] | None = None,
) -> list[Wire]:
    """What one row is to the client, which of a session's threads may be several events. The last of them has
    the row's number, so that whoever comes back has had all or is given all again. `acts`: of `acted_on`."""
    event = wire_event(row, ours=ours, thread=thread, reader=reader, acts=acts)
    shown = [event] if event is not None else []
    if thread is not None or row.type not in PUBLISHED:
        return shown
    for place, told in enumerate(told_of_threads(row.value, row.conversation)):
        call = told.call
        body: Wire | None = None
        if call is not None:
            below = acted_on([call], reader)
            body = wire_event(call, ours=ours, reader=reader, acts=below)
        shown.append(
            {
                "type": told.type,
                "id": told.id or f"{row.uid}_{place}",
                **(body or {}),
                **told.fields,
                "processed_at": timestamp(row.created_at),
            }
        )
    for each in shown[:-1]:
        each.pop("x_seq", None)
    return [*shown[:-1], {**shown[-1], "x_seq": row.seq}] if shown else []


def row_of(told: str) -> str:
    """The id of the row that an event is told of; what comes of one row has its id and a number."""
    return "_".join(told.split("_", 2)[:2])


def wire_event(
    row: Event,
    *,
    ours: bool = False,
    thread: Thread | None = None,
    reader: User | None = None,
    acts: Mapping[str, Wire] | None = None,
) -> Wire | None:
    """None for what is not for this client. `reader` as for `agents.configured`, `acts` of `acted_on`."""
    if not ours and _waits_below(row.value):
        return None
    body = _body(row.value, ours)
    if body is None:
        return None
    shown: Wire = {"type": row.type, "id": row.uid, **body}
    if acts_on := (acts or {}).get(row.uid):
        shown["x_acts_on"] = acts_on
    if thread is not None and row.type.startswith(STATUS):
        shown["type"] = row.type.replace(STATUS, THREAD_STATUS, 1)
        shown |= {"session_thread_id": thread.id, "agent_name": thread.agent_name}
    if thread is not None and isinstance(row.value, UserMessage) and row.value.by_agent:
        shown["type"] = "agent.thread_message_received"
        shown["from_session_thread_id"] = thread.parent
        shown["processed_at"] = timestamp(row.processed_at or row.created_at)
        return {**shown, "x_seq": row.seq}
    if isinstance(row.value, SessionUpdated) and row.value.overrides:
        shown["agent"] = _agent_after(row, row.value, reader)
    if isinstance(row.value, SessionStatusIdle) and isinstance(
        row.value.stop_reason, RequiresAction
    ):
        shown["stop_reason"]["event_ids"] = _for_people(row.value.stop_reason.event_ids)
    # The public API handles an outcome by taking it in.
    handled = row.created_at if isinstance(row.value, UserDefineOutcome) else row.processed_at
    shown["processed_at"] = timestamp(handled)
    shown["x_seq"] = row.seq
    return shown


def _agent_after(row: Event, event: SessionUpdated, reader: User | None) -> Wire:
    """The whole of the session's agent as it was from this event on. What else a session overrides
    never changes after its beginning."""
    conversation = row.conversation
    version = conversation.agent_version
    fields = {**version.stored_config, **conversation.overrides, **event.overrides}
    config = AgentConfig.model_validate(fields, context=STORED)
    return ConfiguredAgent.model_validate(
        session_agent(version, config, conversation, reader)
    ).wire()


def _for_people(calls: Sequence[str]) -> list[str]:
    """Those of the calls that no subagent carries out: nobody can answer the others."""
    carried = set(Subagent.objects.filter(call_uid__in=calls).values_list("call_uid", flat=True))
    return [call for call in calls if call not in carried]


def _waits_below(event: EventValue) -> bool:
    """A rest that is none to who waits for a session: threads of it work on."""
    return isinstance(event, SessionStatusIdle) and event.waits_for(WAITS_FOR_SUBAGENTS)


def echo(uid: str, value: EventValue, processed_at: datetime | None, seq: int | None) -> Wire:
    """An input as its sender reads it back."""
    body = _body(value, False) or {}
    shown: Wire = {"type": value.type, "id": uid, **body}
    if isinstance(value, UserDefineOutcome):
        processed_at = processed_at or timezone.now()
    shown["processed_at"] = timestamp(processed_at)
    if seq is not None:
        shown["x_seq"] = seq
    return shown


def timestamp(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC."""
    if moment is None:
        return None
    return moment.isoformat().replace("+00:00", "Z")


def _body(event: EventValue, ours: bool) -> Wire | None:
    if event.type.startswith(OURS):
        return _plain(event) if ours else None
    match event:
        case UserMessage():
            files = [file.model_dump() for file in event.files]
            told = {"content": blocks(event.content), **_sent_along(event.front_end)}
            return {**told, "x_files": files} if files else told
        case UserInterrupt():
            thread = event.session_thread_id
            return {"session_thread_id": thread_id(thread) if thread else None}
        case UserToolConfirmation():
            edited = event.edited_input
            return {
                "tool_use_id": event.tool_use_id,
                "result": event.result,
                "deny_message": event.deny_message,
                **({"x_edited_input": edited} if edited is not None else {}),
            }
        case UserCustomToolResult():
            return {
                "custom_tool_use_id": event.custom_tool_use_id,
                "content": blocks(event.content),
                "is_error": event.is_error,
                "x_untrusted": event.untrusted,
                **_sent_along(event.front_end),
            }
        case UserToolResult():
            return {
                "tool_use_id": event.tool_use_id,
                "content": blocks(event.content),
                "is_error": event.is_error,
                "session_thread_id": None,
                "x_untrusted": event.untrusted,
            }
        case UserDefineOutcome():
            return {
                "outcome_id": event.outcome_id,
                "description": event.description,
                "rubric": {"type": "text", "content": event.rubric},
                "max_iterations": event.max_iterations,
                "x_checks": [each.model_dump() for each in event.checks],
            }
        case SpanOutcomeEvaluationStart():
            return {"outcome_id": event.outcome_id, "iteration": event.iteration}
        case SpanOutcomeEvaluationEnd():
            return {
                "outcome_evaluation_start_id": event.outcome_evaluation_start_id,
                "outcome_id": event.outcome_id,
                "iteration": event.iteration,
                "result": event.result,
                "explanation": explanation_of(event),
                "usage": event.usage.model_dump(),
                "x_criteria": [each.model_dump() for each in event.criteria],
            }
        case AgentMessage():
            return {"content": blocks(event.content), "x_interrupted": event.interrupted}
        case AgentThinking():
            return {"x_thinking": event.thinking} if ours else {}
        case AgentToolUse():
            name, given = public_call(event.name, event.input)
            shown = {**_call(event), "name": name, "input": given, "session_thread_id": None}
            return {**shown, "x_name": event.name}
        case AgentMcpToolUse():
            bare = event.name.removeprefix(f"mcp__{event.mcp_server_name}__")
            shown = {**_call(event), "name": bare, "mcp_server_name": event.mcp_server_name}
            return {**shown, "x_host": event.host} if event.host else shown
        case AgentCustomToolUse():
            shown = {"name": event.name, "input": event.input, "session_thread_id": None}
            return {**shown, "x_of_front_end": True} if event.of_front_end else shown
        case AgentToolResult():
            return {
                "tool_use_id": event.tool_use_id,
                "content": blocks(event.content),
                "is_error": event.is_error,
                "x_outcome": event.outcome,
            }
        case AgentMcpToolResult():
            return {
                "mcp_tool_use_id": event.mcp_tool_use_id,
                "content": blocks(event.content),
                "is_error": event.is_error,
                "x_outcome": event.outcome,
            }
        case (
            AgentThreadContextCompacted()
            | SessionStatusRunning()
            | SessionStatusTerminated()
            | SpanModelRequestStart()
        ):
            return {}
        case SessionStatusRescheduled():
            return {"x_delay_seconds": event.delay_seconds}
        case SessionStatusIdle():
            return _idle(event)
        case SessionError():
            return {"error": _error(event)}
        case SessionUpdated():
            if event.title is not None:
                return {"title": event.title}
            return {} if event.overrides else None
        case SessionUsage():
            return {"usage": _usage(event), "budget": None}
        case SessionThreadCreated():
            return {
                "session_thread_id": thread_id(event.session_thread_id),
                "agent_name": name_on_wire(event.agent_name),
                "workflow_run_id": None,
            }
        case SpanModelRequestEnd():
            return {
                "model_request_start_id": event.model_request_start_id,
                "is_error": event.is_error,
                "model_usage": event.model_usage.model_dump(),
            }
        case _:
            return _plain(event) if ours else None


def _plain(event: EventValue) -> Wire:
    body: Wire = event.model_dump(mode="json", exclude={"type"})
    return body


def _sent_along(front_end: FrontEnd | None) -> Wire:
    return {"x_front_end": front_end.model_dump(mode="json")} if front_end is not None else {}


def _call(event: AgentToolUse | AgentMcpToolUse) -> Wire:
    asked = event.evaluated_permission
    policy = "always_ask" if asked == "ask" else "always_allow"
    return {
        "name": event.name,
        "input": event.input,
        "evaluated_permission": asked,
        "evaluation": {"type": policy} if asked != "deny" else None,
        "x_reason": event.reason,
        **({"x_within": event.within} if event.within else {}),
    }


def _idle(event: SessionStatusIdle) -> Wire:
    shown: Wire = {"stop_reason": event.stop_reason.model_dump(mode="json"), "stop_details": None}
    details = event.stop_details
    if details is not None:
        shown["x_stop_details"] = details.model_dump(mode="json")
        if isinstance(event.stop_reason, Refusal):
            shown["stop_details"] = {
                "type": "refusal",
                "category": None,
                "explanation": details.message,
            }
    shown["x_interrupted"] = event.interrupted
    return shown


def _error(event: SessionError) -> Wire:
    error = event.error
    return {
        "type": error.type if error.type in ERROR_TYPES else "unknown_error",
        "message": error.words,
        "retry_status": {"type": error.retry_status},
        "x_code": error.code,
        "x_event_ids": list(error.event_ids),
    }


def _usage(event: SessionUsage) -> Wire:
    return {
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "cache_read_input_tokens": event.cache_read_input_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": event.cache_creation_input_tokens,
            "ephemeral_1h_input_tokens": 0,
        },
    }


def blocks(content: Iterable[Block]) -> list[Wire]:
    # The public vocabulary's documents have no number of pages.
    return [block.model_dump(mode="json", exclude={"pages"}) for block in content]
