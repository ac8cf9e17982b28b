"""Whatever is said, asked and brought, and whenever older messages are summarised or dropped: each request
fits its window, is one that services accept, holds the last question whole, and begins as the one before."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agentconfig import Limits
from harness.content import Text, text_of
from harness.contextplan import reserve_of
from harness.errors import BadRequest
from harness.events import (
    AgentThreadContextCompacted,
    CompactionRequested,
    InputTaken,
    SpanModelRequestStart,
    UserMessage,
)
from harness.history import Entry
from harness.messages import ModelRequest, Usage
from harness.providers.anthropic_request import request_body
from harness.providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool, said
from tests.harness.test_transcript import assert_acceptable
from tests.standins.anthropic_rules import check_request
from tools_app.builtin.rereading import TOOLS as REREADING

step = st.tuples(
    st.integers(0, 1_500),
    st.lists(st.sampled_from([10, 300, 4_000, 30_000]), min_size=1, max_size=3),
)
"""Characters that the agent says, and those that each of its calls brings."""
turn = st.tuples(st.integers(1, 4_000), st.lists(step, max_size=8), st.booleans())
"""Characters of the question, steps, and whether somebody asks for a summary behind it."""


def _count(request: ModelRequest, bytes_per_token: float) -> int:
    """As a service counts."""
    return int(
        len(str(request_body(request, provider="anthropic", caching=False))) / bytes_per_token
    )


class Service:
    """Answers by a plan of turns, fails to summarise when it is told to, refuses nothing."""

    def __init__(self, turns: Any, bytes_per_token: float, fails: Any) -> None:
        self.bytes_per_token = bytes_per_token
        self.replies = itertools.chain.from_iterable(self._turn(steps) for _q, steps, _c in turns)
        self.fails = itertools.cycle(fails)

    def _turn(self, steps: Any) -> Any:
        for words, sizes in steps:
            yield "w" * words, [call("look", text=str(size)) for size in sizes]
        yield "That is all.", []

    def __call__(self, request: ModelRequest) -> Any:
        usage = Usage(input_tokens=_count(request, self.bytes_per_token), output_tokens=50)
        if request.purpose == "compaction":
            return BadRequest("No.") if next(self.fails) else reply("In short. " * 50, usage=usage)
        words, calls = next(self.replies)
        return reply(*([words] if words else []), *calls, usage=usage)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(turn, min_size=1, max_size=6),
    st.sampled_from([12_000, 24_000, 64_000]),
    st.floats(3.0, 4.5),
    st.lists(st.booleans(), min_size=1, max_size=3),
)
def test_every_request_of_any_conversation_is_sound(turns, window, bytes_per_token, fails):
    service = Scripted(Service(turns, bytes_per_token, fails))
    look = make_tool("look", lambda _context, given: "r" * int(given["text"]))
    bench = Bench(
        service,
        [look, *REREADING],
        limits=Limits(context_window=window, output_tokens=2_000, token_budget=10**9),
    )
    for question, _steps, compacts in turns:
        asyncio.run(bench.run(said("q" * question)))
        if compacts:
            asyncio.run(bench.run(CompactionRequested(focus="the rest")))
    sent = [request for request in service.requests if request.purpose == "main"]
    starts = [
        entry
        for entry in bench.entries(SpanModelRequestStart)
        if isinstance(entry.event, SpanModelRequestStart) and entry.event.purpose == "main"
    ]
    assert len(sent) == len(starts) == sum(len(steps) + 1 for _q, steps, _c in turns)
    for request, start in zip(sent, starts, strict=True):
        assert_acceptable(request.messages)
        check_request({**request_body(request, provider="anthropic", caching=True), "stream": True})
        room = window - reserve_of(window, 2_000)
        assert _count(request, bytes_per_token) <= room
        assert _question(bench.journal.entries, start) in _words(request)
    for (before, one), (after, two) in itertools.pairwise(zip(sent, starts, strict=True)):
        _assert_same_beginning(before, after, bench.journal.entries[one.seq : two.seq])


def _question(entries: list[Entry], start: Entry) -> str:
    said_by = {entry.uid: entry.event for entry in entries}
    taken = [e.event for e in entries[: start.seq] if isinstance(e.event, InputTaken)][-1]
    message = said_by[taken.event_ids[0]]
    assert isinstance(message, UserMessage)
    return text_of(message.content)


def _words(request: ModelRequest) -> list[str]:
    return [p.text for m in request.messages for p in m.parts if isinstance(p, Text)]


def _assert_same_beginning(before: ModelRequest, after: ModelRequest, between: list[Entry]) -> None:
    """Up to what was changed in between: a summary, or the first result that was shortened."""
    assert (before.system, before.tools) == (after.system, after.tools)
    if any(isinstance(entry.event, AgentThreadContextCompacted) for entry in between):
        return
    for old, new in zip(before.messages, after.messages, strict=False):
        if old != new:
            shortened = "shortened" in str(new.parts) or "left out" in str(new.parts)
            assert shortened, "a message changed that nothing had to change"
            return
    assert len(after.messages) > len(before.messages)
