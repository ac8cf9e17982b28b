"""What must hold at the end of a conversation that was killed, wherever it was killed.

A problem begins with its class: `lost`, `repeated`, or anything else for a fault of the trial itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conversations import log
from conversations.branches import branches_of
from conversations.fileevents import FilesRestored
from conversations.models import Event
from harness.content import Text
from harness.events import (
    AgentMessage,
    AgentThreadContextCompacted,
    AgentToolResult,
    AgentToolUse,
    InputTaken,
    Rewound,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanToolStart,
    ToolResult,
    ToolUse,
    UserMessage,
    UserToolConfirmation,
    answered_call,
)
from harness.messages import ModelRequest, ToolSpec
from harness.texts import Texts
from harness.transcript import build_messages
from providers.anthropic_request import request_body
from tests.killing import scenario
from tests.standins.anthropic_rules import check_request
from tools_app.catalogue import all_tools


def problems_of(conversation_id: int, effects: list[str], workspaces: Path) -> list[str]:
    log_rows = list(Event.objects.filter(conversation_id=conversation_id).order_by("seq"))
    path = branches_of(conversation_id, len(log_rows)).path()
    rows = [row for row in log_rows if row.seq in path]
    return [
        *_of_the_log(log_rows),
        *_of_the_branches(log_rows),
        *_of_the_conversation(rows),
        *_of_the_calls(rows),
        *_of_the_effect(effects),
        *_of_what_was_sent(rows, workspaces.parent / "effects.asked"),
        *_of_the_file(rows, workspaces),
        *_of_the_summary(rows),
        *_of_the_transcript(conversation_id),
    ]


def _of_the_log(rows: list[Event]) -> Iterator[str]:
    if [row.seq for row in rows] != list(range(1, len(rows) + 1)):
        yield "lost: the sequence has gaps"


def _of_the_branches(rows: list[Event]) -> Iterator[str]:
    """Each way was gone once, and files came back with it once."""
    whys = [row.value.why for row in rows if isinstance(row.value, Rewound)]
    wanted = ["regenerate", "rewind", "switch"] if scenario.goes_back() else []
    if whys != wanted:
        yield f"{'repeated' if len(whys) > len(wanted) else 'lost'}: the ways gone were {whys}"
    owed = [v.checkpoint for row in rows if isinstance(v := row.value, Rewound) and v.checkpoint]
    came = [v for row in rows if isinstance(v := row.value, FilesRestored)]
    if [each.checkpoint for each in came] != owed or any(each.problem for each in came):
        kind = "repeated" if len(came) > len(owed) else "lost"
        yield f"{kind}: files were to come back {len(owed)} times: {came}"
    if scenario.goes_back() and len(owed) != 2:
        yield f"lost: files went along {len(owed)} times"


def _of_the_conversation(rows: list[Event]) -> Iterator[str]:
    """Both messages once, the second behind the first one's work, each with its last words."""
    messages = [row for row in rows if isinstance(row.value, UserMessage)]
    if [_words(row) for row in messages] != [scenario.FIRST, scenario.SECOND]:
        kind = "repeated" if len(messages) > 2 else "lost"
        yield f"{kind}: of two messages there are {len(messages)}"
        return
    taken = {
        uid: row.seq
        for row in rows
        if isinstance(v := row.value, InputTaken)
        for uid in v.event_ids
    }
    # What a reply had said before its process died stays, and the agent is asked to go on from there.
    lost = {
        v.model_request_start_id
        for row in rows
        if isinstance(v := row.value, SpanModelRequestEnd) and v.end == "lost"
    }
    ends = {}
    for message, last_words in scenario.LAST_WORDS.items():
        said = [
            row.seq
            for row in rows
            if isinstance(v := row.value, AgentMessage)
            and v.model_request_id not in lost
            and _words(row) == last_words
        ]
        if len(said) != 1:
            yield f"{'repeated' if said else 'lost'}: “{last_words}” was said {len(said)} times"
            return
        ends[message] = said[0]
    if set(taken) != {message.uid for message in messages}:
        yield "lost: a message was never taken"
    elif not messages[1].seq < ends[scenario.FIRST] < taken[messages[1].uid]:
        yield "trial: the second message did not have to wait"
    if not any(isinstance(row.value, UserToolConfirmation) for row in rows):
        yield "trial: no person was asked"


def _of_the_calls(rows: list[Event]) -> Iterator[str]:
    calls = [row for row in rows if isinstance(row.value, ToolUse)]
    names = [row.value.name for row in calls]
    if names != scenario.calls():
        yield f"lost: the calls were {names}"
    answers = [answered_call(row.value) for row in rows if isinstance(row.value, ToolResult)]
    if sorted(row.uid for row in calls) != sorted(uid for uid in answers if uid):
        yield "lost: a call has no answer, or two"
    for call in calls:
        begun = [
            row
            for row in rows
            if isinstance(v := row.value, SpanToolStart) and v.tool_use_id == call.uid
        ]
        if call.value.name == scenario.WRITE and len(begun) != 1:
            yield f"{'repeated' if begun else 'lost'}: the file was written {len(begun)} times"


def _of_the_effect(effects: list[str]) -> Iterator[str]:
    if len(effects) != 1:
        yield f"{'repeated' if effects else 'lost'}: the effect happened {len(effects)} times"


def _of_what_was_sent(rows: list[Event], path: Path) -> Iterator[str]:
    """An MCP server heard of the call as often as a person allowed it, and no oftener."""
    if not scenario.is_mcp():
        return
    asked = len(path.read_text().splitlines()) if path.exists() else 0
    allowed = [
        v
        for row in rows
        if isinstance(v := row.value, UserToolConfirmation) and v.result == "allow"
    ]
    if not 1 <= asked <= len(allowed):
        kind = "repeated" if asked else "lost"
        yield f"{kind}: allowed {len(allowed)} times, it was sent {asked} times"


def _of_the_file(rows: list[Event], workspaces: Path) -> Iterator[str]:
    """It is there, unless the agent was told, as the answer of this very call, that it may not be."""
    written = [path.read_text() for path in workspaces.rglob(scenario.FILE)]
    if written == [scenario.CONTENT]:
        return
    uids = {
        row.uid
        for row in rows
        if isinstance(v := row.value, AgentToolUse) and v.name == scenario.WRITE
    }
    told = [
        v.outcome
        for row in rows
        if isinstance(v := row.value, AgentToolResult) and v.tool_use_id in uids
    ]
    if told != ["unknown"]:
        yield f"lost: the file holds {written}, and its write was answered {told}"


def _of_the_summary(rows: list[Event]) -> Iterator[str]:
    """One summary, and no request for one was answered whose summary was not kept."""
    told = [v for row in rows if isinstance(v := row.value, AgentThreadContextCompacted)]
    wanted = 1 if scenario.compacts() else 0
    if [each.summary for each in told] != [scenario.SUMMARY] * wanted:
        yield f"{'repeated' if len(told) > wanted else 'lost'}: of {wanted} summaries there are {told}"
    asked = {
        row.uid
        for row in rows
        if isinstance(v := row.value, SpanModelRequestStart) and v.purpose == "compaction"
    }
    paid = [
        v.end
        for row in rows
        if isinstance(v := row.value, SpanModelRequestEnd)
        and v.model_request_start_id in asked
        and v.end != "lost"
    ]
    if len(paid) > wanted:
        yield f"repeated: {len(paid)} summaries were paid for"
    if any(row.type == "x.compaction_requested" and row.processed_at is None for row in rows):
        yield "lost: what was asked for still waits"


def _of_the_transcript(conversation_id: int) -> Iterator[str]:
    dialogue = build_messages(log.entries_after(conversation_id, 0), texts=Texts())
    try:
        tools = tuple(ToolSpec(t.name, t.description, t.input_schema) for t in all_tools().values())
        request = ModelRequest("claude-sonnet-5-5", "", dialogue, tools)
        body = request_body(request, provider="anthropic", caching=False)
        check_request({**body, "stream": True})
    except Exception as problem:
        yield f"lost: a service would refuse the transcript: {problem}"


def _words(row: Event) -> str:
    value = row.value
    content = value.content if isinstance(value, UserMessage | AgentMessage) else ()
    return "".join(part.text for part in content if isinstance(part, Text))
