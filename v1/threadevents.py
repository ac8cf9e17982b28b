"""What the list and the stream of a session tell of its threads: how each stands, what is said to it and by
it, and its calls that wait for a person.

The session's log says it in events of this server (`PUBLISHED`); one of them may be several of the public
API. A thread's calls keep their ids, by which they are answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conversations.models import Conversation, Event
from harness.events import (
    AgentCustomToolUse,
    AgentMcpToolUse,
    AgentMessage,
    AgentToolUse,
    SubagentEnded,
    SubagentStarted,
)
from harness.events import Event as EventValue
from subagents.events import SubagentsAsk, ThreadAsk
from subagents.models import Subagent
from wire.ids import thread_id

Wire = dict[str, Any]

ADVISOR = "anthropic.advisor"
"""What the thread of an advisor is called on this wire."""
PUBLISHED: Mapping[str, tuple[str, ...]] = {
    "x.subagent_started": ("agent.thread_message_sent", "session.thread_status_running"),
    "x.subagent_ended": (
        "agent.thread_message_received",
        "session.thread_status_idle",
        "session.thread_status_terminated",
    ),
    "x.subagents_ask": (
        "agent.tool_use",
        "agent.mcp_tool_use",
        "agent.custom_tool_use",
        "session.thread_status_idle",
        "session.thread_status_running",
        "session.status_idle",
        "session.status_running",
    ),
}
"""Types in a session's log, and which public ones they are told as."""


def name_on_wire(name: str) -> str:
    return ADVISOR if name == "advisor" else name


def rows_for(types: Iterable[str]) -> list[str]:
    """The types of rows that may be told as one of these."""
    wanted = set(types)
    return [*wanted, *(row for row, told in PUBLISHED.items() if wanted.intersection(told))]


@dataclass(frozen=True, slots=True)
class Told:
    """One event of the public API."""

    type: str
    fields: Wire = field(default_factory=dict)
    id: str = ""
    """Empty: it has one made of its row's."""
    call: Event | None = None
    """The call of a thread that it shows, as the thread's log has it."""


def told_of_threads(value: EventValue, conversation: Conversation) -> list[Told]:
    """What an event of a session's log tells of its threads, in order."""
    match value:
        case SubagentStarted():
            return _started(value)
        case SubagentEnded() if value.subagent:
            return _ended(value)
        case SubagentsAsk():
            return _asks(value, conversation)
        case _:
            return []


def _started(value: SubagentStarted) -> list[Told]:
    here = _thread(value.subagent, value.name)
    row = Subagent.objects.filter(call_uid=value.tool_use_id).first()
    words = row.prompt if row is not None else value.description
    sent = {
        "to_session_thread_id": here["session_thread_id"],
        "to_agent_name": here["agent_name"],
        "content": [{"type": "text", "text": words}],
    }
    return [Told("agent.thread_message_sent", sent), Told("session.thread_status_running", here)]


def _ended(value: SubagentEnded) -> list[Told]:
    row = Subagent.objects.filter(call_uid=value.tool_use_id).select_related("child").first()
    here = _thread(value.subagent, row.kind if row is not None else "")
    told: list[Told] = []
    if row is not None and row.child is not None:
        said = Event.objects.filter(conversation=row.child, type="agent.message")
        last = said.filter(seq__lte=row.ended_seq or 2**62).order_by("-seq").first()
        if last is not None and isinstance(last.value, AgentMessage):
            received = {
                "from_session_thread_id": here["session_thread_id"],
                "from_agent_name": here["agent_name"],
                "content": [block.model_dump(mode="json") for block in last.value.content],
            }
            told.append(Told("agent.thread_message_received", received))
    if here["agent_name"] == ADVISOR or value.state == "lost":
        return [*told, Told("session.thread_status_terminated", here)]
    reason = "retries_exhausted" if value.state == "failed" else "end_turn"
    idle = {**here, "stop_reason": {"type": reason}, "stop_details": None}
    return [*told, Told("session.thread_status_idle", idle)]


def _asks(value: SubagentsAsk, conversation: Conversation) -> list[Told]:
    told = [
        Told("session.thread_status_running", _thread(each.thread, each.name))
        for each in value.going_on
    ]
    for each in value.asking:
        idle = {**_thread(each.thread, each.name), **_requires(each.calls)}
        idle |= {"x_read_to": each.read_to} if each.read_to else {}
        told += [*_calls(each, conversation), Told("session.thread_status_idle", idle)]
    if value.rests:
        told.append(Told("session.status_idle", _requires(value.all_calls)))
    elif value.going_on:
        told.append(Told("session.status_running"))
    return told


def _calls(ask: ThreadAsk, conversation: Conversation) -> list[Told]:
    """Those that were not told of before, as the thread has them."""
    wanted = [call for call in ask.calls if call not in ask.known]
    rows = Event.objects.filter(
        conversation__uid=ask.thread, conversation__owner=conversation.owner_id, uid__in=wanted
    )
    here = {"session_thread_id": thread_id(ask.thread)}
    return [
        Told(row.type, here, id=row.uid, call=row)
        for row in rows.order_by("seq")
        if isinstance(row.value, AgentToolUse | AgentMcpToolUse | AgentCustomToolUse)
    ]


def _requires(calls: Sequence[str]) -> Wire:
    reason = {"type": "requires_action", "event_ids": list(calls)}
    return {"stop_reason": reason, "stop_details": None}


def _thread(uid: str, name: str) -> Wire:
    return {"session_thread_id": thread_id(uid), "agent_name": name_on_wire(name)}
