"""What a hostile or broken model service may send: bounded, a fault with a code, and charged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from harness import held
from harness.errors import BadReply, ProviderError, ProviderTimedOut, ProviderUnreachable
from harness.estimates import CHARACTERS_PER_TOKEN
from harness.events import SessionError, SpanModelRequestEnd
from harness.messages import ModelRequest, Piece, TextDelta, ThinkingDone, ToolCallDone
from harness.provider import Provider
from providers import failures, sse
from providers.failures import MOST_WORDS
from providers.scripted import Hold, reply, say
from providers.sse import EventData
from providers.table import ProviderConfig, build
from reading.foreignjson import PARTS
from tests.harness.bench import Bench, said, scripted
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi
from tests.standins.provider_contract import ask, pieces_of, pieces_until_error
from tests.standins.wire import HttpFault

KEY = "sk-do-not-show-1234567890"
DIALECTS = ("anthropic", "openai_compatible")
LONG = 8 * 1024 * 1024


@asynccontextmanager
async def served(dialect: str, *answers: Any) -> AsyncIterator[Provider]:
    async with MessagesApi(list(answers)) as api:
        url = api.base_url + ("/v1" if dialect == "openai_compatible" else "")
        provider = build(ProviderConfig(dialect, KEY, url, timeout=PATIENCE))
        try:
            yield provider
        finally:
            await provider.aclose()


def stream_of(*events: Any) -> HttpFault:
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return HttpFault(200, text.encode(), {"content-type": "text/event-stream"})


class Anthropic:
    """Replies with one thing amiss, in one dialect."""

    name = "anthropic"

    def usage(self, figure: Any) -> Iterator[Any]:
        yield {"type": "message_start", "message": {"usage": {"input_tokens": figure}}}

    def calls(self, count: int, name: Any = "look") -> Iterator[Any]:
        for index in range(count):
            block = {"type": "tool_use", "name": name, "input": {}}
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}

    def arguments(self, piece: str, times: int) -> Iterator[Any]:
        block = {"type": "tool_use", "name": "look", "input": {}}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        for _ in range(times):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield {"type": "content_block_delta", "index": 0, "delta": delta}

    def shapeless(self) -> Iterator[Any]:
        yield {"type": "content_block_delta", "delta": 5}

    def error(self, words: Any) -> Iterator[Any]:
        yield {"type": "error", "error": {"type": "api_error", "message": words}}


class OpenAI:
    name = "openai_compatible"

    def usage(self, figure: Any) -> Iterator[Any]:
        yield {"choices": [], "usage": {"prompt_tokens": figure}}

    def calls(self, count: int, name: Any = "look") -> Iterator[Any]:
        for index in range(count):
            function = {"name": name, "arguments": "{}"}
            yield self._delta(tool_calls=[{"index": index, "id": f"{index}", "function": function}])

    def arguments(self, piece: str, times: int) -> Iterator[Any]:
        for _ in range(times):
            function = {"name": "look", "arguments": piece}
            yield self._delta(tool_calls=[{"index": 0, "function": function}])

    def shapeless(self) -> Iterator[Any]:
        yield {"choices": [7]}

    def error(self, words: Any) -> Iterator[Any]:
        yield {"error": {"type": "api_error", "message": words}}

    def _delta(self, **fields: Any) -> Any:
        return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


@pytest.fixture(params=[Anthropic(), OpenAI()], ids=DIALECTS)
def service(request: pytest.FixtureRequest) -> Any:
    return request.param


async def fault_of(service: Any, events: Iterator[Any]) -> ProviderError:
    async with served(service.name, stream_of(*events)) as provider:
        _, error = await pieces_until_error(provider, ask())
    error.message.encode()  # the log can hold it
    return error


@pytest.mark.parametrize("figure", [-1, 10**30, "7", True, 1e300, [1], 0.5], ids=str)
async def test_a_figure_of_usage_that_cannot_be_is_a_fault(service, figure):
    assert (await fault_of(service, service.usage(figure))).code == "bad_reply"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        '{"choices": [], "usage": {"prompt_tokens": %s}}' % ("9" * 5_000),
        '{"type": "message_start", "message": {"usage": {"input_tokens": %s}}}' % ("9" * 5_000),
        "[" * 100_000,
        '{"a":' * 100 + "1" + "}" * 100,
    ],
    ids=range(4),
)
async def test_an_event_that_nobody_can_read_is_the_services_fault(dialect: str, text: str) -> None:
    fault = HttpFault(200, f"data: {text}\n\n".encode(), {"content-type": "text/event-stream"})

    async with served(dialect, fault) as provider:
        _, error = await pieces_until_error(provider, ask())

    assert isinstance(error, ProviderError)


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels else []


@pytest.mark.parametrize("odd", [nested(100), [1] * PARTS], ids=["deep", "many values"])
async def test_an_event_deeper_or_of_more_values_than_anybodys_ends_a_whole_reply(odd: Any):
    """Though it says nothing: one of megabytes would be read for seconds, while everybody waits."""
    whole = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": "Hi."},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    async with served("anthropic", stream_of({"type": "ping"}, *whole)) as provider:
        assert await pieces_of(provider, ask())
    async with served("anthropic", stream_of({"type": "ping", "odd": odd}, *whole)) as provider:
        _, error = await pieces_until_error(provider, ask())
    assert isinstance(error, ProviderError)


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "x" * 10_000, "\ud800", 5], ids=range(5))
async def test_a_name_that_no_tool_has_is_a_fault(service, name):
    assert (await fault_of(service, service.calls(1, name))).code == "bad_reply"


async def test_more_calls_than_any_reply_makes_are_a_fault(service):
    error = await fault_of(service, service.calls(held.MOST_BLOCKS + 1))
    assert error.code == "bad_reply"
    assert "2,000" in error.message


async def test_arguments_without_end_are_a_fault(service):
    times = held.MOST_CHARACTERS // 1_000_000 + 1
    assert (await fault_of(service, service.arguments("x" * 1_000_000, times))).code == "bad_reply"


async def test_arguments_that_break_off_are_charged_as_far_as_they_came(service):
    """Nobody is given them before they are whole, and their service was paid for each of them."""
    async with served(service.name, stream_of(*service.arguments("x" * 1_000, 40))) as provider:
        bench = Bench(provider)
        await bench.run(said("Go."))
    end = bench.events(SpanModelRequestEnd)[0]
    assert (end.is_error, end.estimated) == (True, True)
    assert end.model_usage.input_tokens > 0
    assert end.model_usage.output_tokens == 40_000 // CHARACTERS_PER_TOKEN


async def test_a_reply_that_breaks_off_before_its_first_word_is_charged_with_its_prompt():
    """A model may have thought for minutes of which nothing is told."""
    thinking = {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}
    async with served("openai_compatible", stream_of(thinking)) as provider:
        bench = Bench(provider)
        await bench.run(said("Go."))
    end = bench.events(SpanModelRequestEnd)[0]
    assert (end.is_error, end.estimated) == (True, True)
    assert end.model_usage.input_tokens > 0


async def test_what_has_not_the_form_of_a_reply_is_a_fault(service):
    error = await fault_of(service, service.shapeless())
    assert error.code == "bad_reply"


async def test_one_event_without_end_is_a_fault(service):
    error = await fault_of(service, service.error("x" * LONG))
    assert error.code == "bad_reply"


async def test_a_signature_without_end_is_a_fault():
    block = {"type": "thinking", "thinking": "", "signature": ""}
    delta = {"type": "signature_delta", "signature": "x" * 1_000_000}
    events = [{"type": "content_block_start", "index": 0, "content_block": block}]
    events += [{"type": "content_block_delta", "index": 0, "delta": delta}] * 5
    assert (await fault_of(Anthropic(), iter(events))).code == "bad_reply"


async def test_halves_of_characters_reach_the_log_in_no_field():
    thinking = {"type": "thinking", "thinking": "a\ud800", "signature": "b\udfff"}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "x\ud800", "stop_details": None}},
        {"type": "message_stop"},
    ]
    async with served("anthropic", stream_of(*events)) as provider:
        pieces = await pieces_of(provider, ask())
    assert any(isinstance(piece, ThinkingDone) and piece.signature for piece in pieces)
    repr(pieces).encode()
    for piece in pieces:
        for value in (getattr(piece, name, "") for name in ("text", "signature", "raw_end")):
            value.encode()


async def test_what_is_kept_of_an_error_is_bounded_and_its_key_blanked(service):
    words = "y" * (MOST_WORDS - 10) + KEY + "z" * 1_000_000
    for given, found in ((words, "y" * 100), ({"a": words}, "error"), (KEY * 100_000, "[key]")):
        error = await fault_of(service, service.error(given))
        assert len(error.message) < 2 * MOST_WORDS
        assert found in error.message
        assert KEY[:6] not in error.message


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_so_is_what_is_kept_of_a_refusal(dialect):
    body = {"error": {"type": "t" * 1_000_000, "message": "y" * LONG, "code": ["c"] * 1_000}}
    async with served(dialect, HttpFault(400, body)) as provider:
        _, error = await pieces_until_error(provider, ask())
    assert len(error.message) <= MOST_WORDS


def test_nothing_is_searched_of_an_error_but_what_is_kept_of_it():
    report = failures.report_of(
        {"message": "m" * LONG, "type": "t" * LONG, "code": "c" * LONG}, otherwise="", secret=KEY
    )
    assert len(report.message) == MOST_WORDS
    assert len(report.kind) == len(report.code) == failures.MOST_NAME


def test_a_key_is_shown_in_no_part_where_the_words_are_cut():
    for before in range(MOST_WORDS - len(KEY) - 1, MOST_WORDS + 1):
        text = f"{KEY} {'y' * before}{KEY} and more"
        shown = failures.report_of(text, otherwise="", secret=KEY).message
        assert KEY[: failures.SHORTEST_SECRET] not in shown


def test_a_stream_without_end_is_cut(monkeypatch):
    monkeypatch.setattr(sse, "MOST_OF_STREAM", 1_000)
    data = EventData()
    with pytest.raises(BadReply):
        for _ in range(1_000):
            list(data.feed(b": ping\n\n"))


@pytest.mark.parametrize("chunk", [b"x" * 1_000, b"data: x\n" * 100], ids=["line", "lines"])
def test_an_event_without_end_is_cut_before_it_is_whole(chunk):
    data = EventData()
    with pytest.raises(BadReply):
        for _ in range(sse.MOST_OF_EVENT // len(chunk) * 2):
            list(data.feed(chunk))


async def test_a_reply_that_trickles_for_ever_ends_in_its_time_and_keeps_what_came():
    class Endless:
        name = "scripted"
        requests: tuple[ModelRequest, ...] = ()

        async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
            yield TextDelta(0, "Half of it")
            while True:
                yield TextDelta(0, ".")
                await asyncio.sleep(0)

    bench = Bench(Endless(), reply_seconds=0.05)
    await bench.run(said("Go."))
    (error,) = bench.events(SessionError)
    assert error.error.code == "provider_timed_out"
    assert "AGENTSITE_PROVIDER_REPLY_SECONDS" in error.error.hint
    (end,) = bench.events(SpanModelRequestEnd)
    assert end.model_usage.output_tokens > 0


async def test_the_time_of_a_reply_runs_also_while_nothing_comes():
    bench = Bench(scripted(reply(say("Half", Hold(), "rest"))), reply_seconds=0.05)
    await bench.run(said("Go."))
    assert bench.events(SessionError)[0].error.code == "provider_timed_out"


@pytest.mark.parametrize("was_sent", [True, False])
async def test_a_service_that_is_silent_is_counted_with_what_it_was_sent(was_sent: bool):
    unsent = httpx2.ConnectTimeout("no way there")
    silent = failures.timed_out(1, TimeoutError() if was_sent else unsent)

    class Silent:
        name = "scripted"
        requests: tuple[ModelRequest, ...] = ()

        async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
            yield TextDelta(0, "")
            raise failures.without_words(silent)

    bench = Bench(Silent())
    await bench.run(said("Go."))
    end = bench.events(SpanModelRequestEnd)[0]
    assert (end.is_error, end.estimated) == (True, was_sent)
    assert (end.model_usage.input_tokens > 0, end.model_usage.output_tokens) == (was_sent, 0)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_whether_a_request_had_left_is_known_when_nothing_comes(dialect: str):
    async with MessagesApi([ProviderTimedOut("Silence.")]) as api:
        url = api.base_url + ("/v1" if dialect == "openai_compatible" else "")
        provider = build(ProviderConfig(dialect, KEY, url, timeout=0.3))
        try:
            _pieces, error = await pieces_until_error(provider, ask("Hello"))
        finally:
            await provider.aclose()
    assert isinstance(error, ProviderTimedOut)
    assert error.was_sent


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_whether_a_request_had_left_is_known_when_the_connection_ends(dialect: str):
    async with MessagesApi([ProviderUnreachable("gone")]) as api:
        url = api.base_url + ("/v1" if dialect == "openai_compatible" else "")
        provider = build(ProviderConfig(dialect, KEY, url, timeout=PATIENCE))
        _pieces, cut = await pieces_until_error(provider, ask("Hello"))
        await provider.aclose()
    provider = build(ProviderConfig(dialect, KEY, url, timeout=PATIENCE))  # nobody is there now
    _pieces, refused = await pieces_until_error(provider, ask("Hello"))
    await provider.aclose()
    assert isinstance(cut, ProviderUnreachable)
    assert isinstance(refused, ProviderUnreachable)
    assert (cut.was_sent, refused.was_sent) == (True, False)


async def test_a_bad_reply_ends_the_run_is_not_asked_for_again_and_is_charged():
    class Bad:
        name = "scripted"
        asked = 0

        async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
            self.asked += 1
            yield ToolCallDone(0, "look", {})
            raise held.misshapen()

    bad = Bad()
    bench = Bench(bad)
    await bench.run(said("Go."))
    assert bad.asked == 1
    assert bench.events(SessionError)[0].error.code == "bad_reply"
    (end,) = bench.events(SpanModelRequestEnd)
    assert end.estimated
    assert end.model_usage.input_tokens > 0
