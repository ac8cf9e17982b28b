"""Documents whose pages nobody has counted: held back as the longest, booked as the few they may be."""

from __future__ import annotations

import asyncio

from harness.agentconfig import Limits
from harness.content import Document, Text, UrlSource
from harness.errors import BrokenStream
from harness.estimates import (
    MEDIA_TOKENS,
    PAGES_AT_MOST,
    UNOPENED_AT_MOST,
    likely_prompt_tokens,
    unopened_tokens_at_most,
)
from harness.events import (
    AgentThreadContextCompacted,
    EndTurn,
    InputTaken,
    SessionStatusIdle,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    UserInterrupt,
    UserMessage,
)
from harness.history import Entry
from harness.lostrequests import lost_end
from harness.messages import Message, ModelRequest, Usage
from providers.scripted import Fail, Hold, reply, say
from tests.harness.bench import Bench, scripted
from tests.patience import PATIENCE

LONGEST = (PAGES_AT_MOST - 1) * MEDIA_TOKENS
PAPER = Document(source=UrlSource(url="https://x.example/paper.pdf"))
ASKED = UserMessage(content=(Text(text="What does it say?"), PAPER))
FEW = MEDIA_TOKENS
"""Tokens of a page and of few words, as they are booked."""


def start_of(bench: Bench) -> SpanModelRequestStart:
    (start, *_more) = bench.events(SpanModelRequestStart)
    assert isinstance(start, SpanModelRequestStart)
    return start


def booked(bench: Bench) -> list[int]:
    return [end.model_usage.input_tokens for end in bench.events(SpanModelRequestEnd)]


def ended_well(bench: Bench) -> bool:
    return bool(bench.events(SessionStatusIdle)[-1].stop_reason == EndTurn())


async def test_a_request_that_was_lost_leaves_the_turn_its_budget():
    bench = Bench(scripted("It says so."), limits=Limits(token_budget=30_000))
    message = Entry.of(ASKED)
    request = Entry.of(
        SpanModelRequestStart(
            prompt_tokens_at_most=LONGEST + 6_000, unopened_tokens_at_most=LONGEST
        )
    )
    for entry in (message, Entry.of(InputTaken(event_ids=(message.uid,))), request):
        bench.journal._store(entry)
    await bench.run()
    assert booked(bench)[0] == likely_prompt_tokens(6_000)
    assert ended_well(bench)


async def test_a_reply_that_broke_is_booked_as_what_is_likely():
    bench = Bench(scripted(reply(say("It"), Fail(BrokenStream("Cut off.")))))
    await bench.run(ASKED)
    assert start_of(bench).prompt_tokens_at_most > LONGEST, "held back is the longest"
    assert 0 < booked(bench)[0] < FEW


async def test_a_reply_that_a_person_stopped_is_booked_as_what_is_likely():
    hold = Hold()
    bench = Bench(scripted(reply(say("So far", hold))))
    running = bench.start(ASKED)
    await hold.reached.wait()
    bench.journal.post(UserInterrupt())
    bench.signal.interrupt()
    await asyncio.wait_for(running, PATIENCE)
    (end,) = bench.events(SpanModelRequestEnd)
    assert end.estimated
    assert 0 < end.model_usage.input_tokens < FEW


async def test_a_service_that_says_nothing_fills_no_window_with_what_was_never_opened():
    bench = Bench(
        scripted(reply("It says so.", usage=Usage())), limits=Limits(context_window=100_000)
    )
    await bench.run(ASKED)
    assert 0 < booked(bench)[0] < FEW
    assert bench.events(AgentThreadContextCompacted) == []
    assert ended_well(bench)


def test_a_lost_request_whose_service_made_a_summary_has_read_it_all_twice():
    begun = SpanModelRequestStart(
        prompt_tokens_at_most=2 * (LONGEST + 6_000),
        summary_tokens_at_most=LONGEST + 6_000,
        unopened_tokens_at_most=LONGEST,
    )
    made = AgentThreadContextCompacted(
        summary="All of it.", through="", tokens_before=0, model_request_id="sevt_1"
    )
    assert lost_end("sevt_1", begun, ()).model_usage.input_tokens == likely_prompt_tokens(6_000)
    twice = lost_end("sevt_1", begun, (made,))
    assert twice.model_usage.input_tokens == likely_prompt_tokens(12_000)


def test_many_such_documents_hold_back_no_more_than_the_largest_window_has():
    many = ModelRequest("m", "", (Message("user", (PAPER,) * 7),))
    assert 7 * LONGEST > UNOPENED_AT_MOST
    assert unopened_tokens_at_most(many) == UNOPENED_AT_MOST
