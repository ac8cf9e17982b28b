"""An agent reads earlier parts of its conversation again, and exactly those that it asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.content import Text, text_of
from harness.events import (
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    ApprovalRequested,
    CompactionSkipped,
    ContentSetAside,
    EndTurn,
    Event,
    FeedbackGiven,
    InputTaken,
    MessageEdited,
    SessionStatusIdle,
    SpanModelRequestStart,
    StopDetails,
    UserMessage,
)
from harness.history import Entry
from harness.rules import AskTerms
from harness.tools import Outcome, ToolContext, perform
from tools_app.builtin.rereading import CLIPPED, PAGE
from tools_app.catalogue import find


def log() -> list[Entry]:
    """Two turns; the first calls a tool with a long result."""
    events: list[Event] = [
        UserMessage(content=(Text(text="What is the capital?"),)),
        InputTaken(event_ids=("e1",)),
        SpanModelRequestStart(),
        AgentToolUse(name="look", input={"text": "maps"}, model_request_id="e3"),
        AgentToolResult(tool_use_id="e4", content=(Text(text="b" * PAGE + "THE END"),)),
        AgentMessage(content=(Text(text="It is Quito."),), model_request_id="e3"),
        UserMessage(content=(Text(text="And the river?"),)),
        InputTaken(event_ids=("e7",)),
        AgentMessage(content=(Text(text="The Machángara."),), model_request_id="e3"),
    ]
    return [Entry(f"e{n}", event, n) for n, event in enumerate(events, start=1)]


async def reread(tainted: str = "", later: Sequence[Event] = (), **arguments: Any) -> Outcome:
    tool = find("read_events")
    assert tool is not None
    entries = [*log(), *(Entry(f"e{n}", event, n) for n, event in enumerate(later, start=10))]
    context = ToolContext("e9", Path("/nonexistent"), entries=entries, ever_tainted_by=tainted)
    return await perform(tool, context, arguments)


async def numbers(**arguments: Any) -> list[int]:
    lines = text_of((await reread(**arguments)).content).splitlines()
    return [int(line[1:].split()[0]) for line in lines if line.startswith("#")]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({}, [1, 4, 5, 6, 7, 9]),
        ({"limit": 2}, [7, 9]),
        ({"before": "e6"}, [1, 4, 5]),
        ({"before": "6", "limit": 1}, [5]),
        ({"after": "e5"}, [6, 7, 9]),
        ({"after": "e1", "limit": 2}, [4, 5]),
        ({"around": "e6", "limit": 3}, [5, 6, 7]),
        ({"turn": "e5"}, [4, 5, 6, 7]),
        ({"turn": "9"}, [9]),
        ({"types": ["user.message"]}, [1, 7]),
        ({"types": ["span.model_request_start"]}, [3]),
        ({"query": "quito"}, [6]),
        ({"query": "river", "after": "e7"}, []),
    ],
)
async def test_a_slice_holds_exactly_the_events_that_were_asked_for(arguments, wanted):
    assert await numbers(**arguments) == wanted


async def test_a_long_result_is_clipped_among_others_and_read_whole_by_its_call():
    among = text_of((await reread(around="e5", limit=1)).content)
    assert "THE END" not in among
    assert f"[… {PAGE + 7 + len('(of e4) ') - CLIPPED:,} more; event e5]" in among
    first = text_of((await reread(call="e4")).content)
    assert first.startswith("#4 e4 agent.tool_use:\nlook {'text': 'maps'}")
    assert f"offset {PAGE}" in first
    rest = text_of((await reread(call="e4", offset=PAGE)).content)
    assert rest.endswith("THE END")


async def test_what_is_not_there_is_said_and_nothing_is_guessed():
    assert (await reread(call="sevt_other")).is_error
    assert (await reread(before="sevt_other")).is_error
    assert text_of((await reread(query="nobody said this")).content) == "No event fits."


async def test_what_strangers_wrote_stays_theirs_when_it_is_read_again():
    assert not (await reread()).untrusted
    outcome = await reread(tainted="web_fetch")
    assert outcome.untrusted
    assert outcome.untrusted_by == "web_fetch, read again"


async def test_what_was_set_aside_is_not_read_in_the_log():
    edited = MessageEdited(event_id="e7", content=(Text(text="And which river?"),))
    aside: list[Event] = [edited, ContentSetAside(event_id="e7"), ContentSetAside(event_id="e4")]
    everything = text_of((await reread(later=aside, limit=50)).content)
    assert "river" not in everything
    assert "bbb" not in everything
    assert "capital" in everything
    assert (await reread(later=aside, event="e7")).is_error
    assert "THE END" not in text_of((await reread(later=aside, call="e4")).content)


async def test_what_was_said_to_people_alone_is_not_read_in_the_log():
    words = "Obey."
    events: list[Event] = [
        FeedbackGiven(event_id="e0", rating="down", comment=words),
        ContentSetAside(event_id="e0", reason=words),
        ApprovalRequested(tool_use_id="e0", reason=words, terms=AskTerms()),
        CompactionSkipped(reason="failed", detail=words),
        SessionStatusIdle(
            stop_reason=EndTurn(), stop_details=StopDetails(code="held", message=words)
        ),
    ]
    entries = [Entry(f"e{n}", event, n) for n, event in enumerate(events, start=1)]
    tool = find("read_events")
    assert tool is not None
    context = ToolContext("e9", Path("/nonexistent"), entries=entries)
    text = text_of((await perform(tool, context, {})).content)
    assert [line.split()[2] for line in text.splitlines()] == [
        "x.feedback_given:",
        "x.content_set_aside:",
        "x.approval_requested:",
        "x.compaction_skipped:",
        "session.status_idle:",
    ]
    assert words not in text
