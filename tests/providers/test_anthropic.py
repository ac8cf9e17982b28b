"""What only the Messages API has: stop reasons, cache marks, thinking, and its keys kept secret."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, get_args

import pytest

from accounts.provider_connections import JudgedConnections
from harness.content import Text
from harness.errors import BadCredentials, BrokenStream, Overloaded, ProviderUnreachable
from harness.messages import (
    Lull,
    Message,
    ModelRequest,
    ModelSettings,
    ReplyDone,
    TextDelta,
    TextDone,
    ThinkingDone,
    ToolAnswer,
    ToolCall,
    ToolCallDone,
    Unshown,
    Usage,
    UsageSeen,
)
from harness.modelcards import CARDS, card_for
from harness.provider import Provider
from providers import anthropic_request
from providers.anthropic import ENDS, TRICKLE, Anthropic
from providers.anthropic_request import KEPT_BYTES, request_body, request_text
from providers.scripted import Hold, Script, call, reply, say, think
from providers.table import ProviderConfig, build
from tests.patience import PATIENCE
from tests.standins.anthropic_rules import check_request
from tests.standins.messages_api import MessagesApi
from tests.standins.provider_contract import LOOK, ask, history, pieces_of, pieces_until_error
from tests.standins.provider_contract import Traits as ContractTraits
from tests.standins.wire import HttpFault

KEY = "sk-ant-do-not-show-1234567890"


@asynccontextmanager
async def served(script: Script, **options: Any) -> AsyncIterator[tuple[Provider, MessagesApi]]:
    async with MessagesApi(script, **options) as api:
        provider = build(ProviderConfig("anthropic", KEY, api.base_url, timeout=PATIENCE))
        try:
            yield provider, api
        finally:
            await provider.aclose()


def body_of(request: ModelRequest, *, caching: bool = True) -> dict[str, Any]:
    """The body as it is sent, checked against the service's rules."""
    body = request_body(request, provider="anthropic", caching=caching)
    extra = body.pop("extra_body", {})
    sent = {**body, **extra, "stream": True}
    check_request(sent)
    return sent


def events(*lines: str) -> HttpFault:
    """An answer of exactly these events."""
    text = "".join(
        f"event: {line.split('|')[0]}\ndata: {line.split('|', 1)[1]}\n\n" for line in lines
    )
    return HttpFault(200, text.encode(), {"content-type": "text/event-stream"})


START = (
    'message_start|{"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    '"model":"m","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}'
)


# --- reading ---------------------------------------------------------------------------------------


def test_every_stop_reason_of_the_sdk_has_a_meaning():
    """A new one in the SDK's type fails here."""
    from anthropic.types import StopReason  # noqa: PLC0415 - heavy, only this test needs it

    assert set(get_args(StopReason)) == set(ENDS)


async def test_usage_is_known_before_the_reply_ends():
    async with served([reply("Hello", usage=Usage(11, 5, 3, 2))]) as (provider, _):
        first, *_, last = await pieces_of(provider, ask())
    assert isinstance(first, UsageSeen)
    assert first.usage == Usage(11, 1, 3, 2)
    assert isinstance(last, ReplyDone)
    assert last.usage == Usage(11, 5, 3, 2)


async def test_a_lull_follows_text_that_trickles_in():
    held = Hold()
    async with served([reply(say("Half of it", held, " and the rest."))]) as (provider, _):
        stream = provider.stream(ask())
        first = [await anext(stream) for _ in range(3)]
        assert [type(piece) for piece in first] == [UsageSeen, TextDelta, Lull]
        assert not held.release.is_set()
        held.release.set()
        rest = [piece async for piece in stream]
    assert rest[0] == TextDelta(0, " and the rest.")
    assert isinstance(rest[-1], ReplyDone)


async def test_no_lull_follows_what_comes_all_at_once():
    held = Hold()
    many = "x" * (TRICKLE + 1)
    async with served([reply(say(many, held), chunk=1)]) as (provider, _):
        stream = provider.stream(ask())
        first = [await anext(stream) for _ in range(TRICKLE + 2)]
        following = asyncio.ensure_future(anext(stream))
        await held.reached.wait()
        held.release.set()
        assert isinstance(await following, TextDone)
        assert not any(isinstance(piece, Lull) for piece in first)
        assert not [piece async for piece in stream if isinstance(piece, Lull)]


async def test_a_call_is_never_waited_for():
    async with served([reply(call("look", path="a.py"), chunk=3, delay=0.001)]) as (provider, _):
        pieces = [piece async for piece in provider.stream(ask())]
    kinds = [type(piece) for piece in pieces if not isinstance(piece, Unshown)]
    assert kinds == [UsageSeen, ToolCallDone, ReplyDone]


async def test_redacted_thinking_is_kept_for_the_next_request():
    async with served([reply(think(redacted_data="sealed"), "Hello")]) as (provider, _):
        pieces = await pieces_of(provider, ask())
    assert ThinkingDone(0, "", redacted_data="sealed") in pieces


async def test_thinking_without_text_keeps_its_signature():
    async with served([reply(think(signature="signed"), "Hello")]) as (provider, _):
        pieces = await pieces_of(provider, ask())
    assert ThinkingDone(0, "", signature="signed") in pieces


async def test_an_unknown_stop_reason_ends_the_turn_and_is_kept_for_the_trace():
    stop = (
        'message_delta|{"type":"message_delta","delta":{"stop_reason":"new_thing"},'
        '"usage":{"output_tokens":3}}'
    )
    async with served([events(START, stop, 'message_stop|{"type":"message_stop"}')]) as (it, _):
        last = (await pieces_of(it, ask()))[-1]
    assert last == ReplyDone("end_turn", Usage(7, 3), "new_thing")


async def test_blocks_that_nobody_asked_for_are_passed_over():
    block = (
        'content_block_start|{"type":"content_block_start","index":0,"content_block":'
        '{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}'
    )
    stop = 'content_block_stop|{"type":"content_block_stop","index":0}'
    end = 'message_stop|{"type":"message_stop"}'
    async with served([events(START, block, stop, end)]) as (provider, _):
        pieces = await pieces_of(provider, ask())
    assert [type(piece) for piece in pieces] == [UsageSeen, ReplyDone]


async def test_input_sent_with_the_start_of_its_block_is_taken():
    block = (
        'content_block_start|{"type":"content_block_start","index":0,"content_block":'
        '{"type":"tool_use","id":"t","name":"look","input":{"path":"a"}}}'
    )
    stop = 'content_block_stop|{"type":"content_block_stop","index":0}'
    end = 'message_stop|{"type":"message_stop"}'
    async with served([events(START, block, stop, end)]) as (provider, _):
        pieces = await pieces_of(provider, ask())
    assert ToolCallDone(0, "look", {"path": "a"}) in pieces
    last = pieces[-1]
    assert isinstance(last, ReplyDone)
    assert last.end == "tool_use"


async def test_a_stream_without_its_last_event_is_broken():
    async with served([events(START)]) as (provider, _):
        pieces, error = await pieces_until_error(provider, ask())
    assert [type(piece) for piece in pieces] == [UsageSeen]
    assert isinstance(error, BrokenStream)
    assert "without ending the message" in str(error)


async def test_an_event_that_is_no_json_breaks_the_stream():
    async with served([events(START, "message_delta|{oops")]) as (provider, _):
        _, error = await pieces_until_error(provider, ask())
    assert isinstance(error, BrokenStream)
    assert "JSONDecodeError" in str(error)


async def test_an_error_event_before_any_text_is_worth_another_try():
    """Nothing was shown yet, so the kind of the error stays visible."""
    trouble = 'error|{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    async with served([events(START, trouble)]) as (provider, _):
        _, error = await pieces_until_error(provider, ask())
    assert isinstance(error, Overloaded)


async def test_one_connection_serves_reply_after_reply():
    async with served(["One", "Two", "Three"]) as (provider, api):
        for _ in range(3):
            await pieces_of(provider, ask())
        assert api.connections == 1


async def test_what_was_sent_is_not_held_while_the_reply_streams():
    request, hold = ask("Hello " * 200_000), Hold()
    async with served([say("First ", hold, "second")]) as (provider, api):
        tracemalloc.start()
        try:
            stream = provider.stream(request)
            while not isinstance(await anext(stream), TextDelta):
                pass
            snapshot = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        made = tracemalloc.Filter(inclusive=True, filename_pattern=anthropic_request.__file__)
        held = sum(trace.size for trace in snapshot.filter_traces([made]).traces)
        hold.release.set()
        assert isinstance([piece async for piece in stream][-1], ReplyDone)
        (headers,) = api.headers
        (got,) = api.requests
    assert int(headers["content-length"]) > 1_200_000
    assert "transfer-encoding" not in headers
    assert got.messages == request.messages
    assert held < 10_000


# --- errors ----------------------------------------------------------------------------------------


async def test_nobody_listening_is_unreachable():
    async with MessagesApi([]) as api:
        url = api.base_url
    provider = build(ProviderConfig("anthropic", KEY, url, timeout=PATIENCE))
    pieces, error = await pieces_until_error(provider, ask())
    await provider.aclose()
    assert not pieces
    assert isinstance(error, ProviderUnreachable)


async def test_an_error_page_of_a_gateway_is_understood_by_its_status():
    page = HttpFault(502, b"<html>Bad gateway</html>", {"content-type": "text/html"})
    async with served([page]) as (provider, _):
        _, error = await pieces_until_error(provider, ask())
    assert isinstance(error, Overloaded)
    assert error.status == 502


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "inf", "retry-after": "nan"}, None),
        ({"retry-after": "9" * 5_000}, None),
        ({}, None),
    ],
)
async def test_the_time_a_service_asks_for_is_read_in_each_form(headers, seconds):
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    async with served([HttpFault(429, body, headers)]) as (provider, _):
        _, error = await pieces_until_error(provider, ask())
    assert error.retry_after == seconds


async def test_the_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture):
    """The stand-in quotes the refused key in its answer, as some services do."""
    caplog.set_level(logging.DEBUG)
    async with served([], api_key="another-key") as (provider, _):
        with pytest.raises(BadCredentials) as caught:
            await pieces_of(provider, ask())
    shown = "".join(traceback.format_exception(caught.value))
    for text in (shown, repr(caught.value), str(caught.value.__dict__), caplog.text):
        assert KEY not in text
    assert "[key]" in str(caught.value)
    assert KEY not in repr(ProviderConfig("anthropic", KEY, headers={"x-gateway": KEY}))


# --- asking ----------------------------------------------------------------------------------------


def test_a_growing_history_keeps_its_beginning_and_moves_the_last_mark():
    """The prompt cache works only while each request begins with the one before."""
    first = history(ContractTraits("anthropic"))
    more = (
        Message("assistant", (Text(text="Certainly."),)),
        Message("user", (Text(text="Go on."),)),
    )
    before, after = body_of(first), body_of(replace(first, messages=first.messages + more))
    assert without_marks(after["messages"])[: len(before["messages"])] == without_marks(
        before["messages"]
    )
    assert before["system"] == after["system"]
    assert before["tools"] == after["tools"]
    marked = [n for n, message in enumerate(after["messages"]) if "cache_control" in str(message)]
    assert marked == [len(before["messages"]) - 1, len(after["messages"]) - 1]


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "llama-7"])
def test_what_is_sent_is_that_body_however_much_of_it_was_translated_before(caching, model):
    whole = history(ContractTraits("anthropic"))
    odd = Message("user", (Text(text="Half a pair: \ud83d"),))
    large = Message("user", (Text(text="x" * 2 * KEPT_BYTES),))
    grown = [*whole.messages, large, *whole.messages, odd, *whole.messages]
    for count in range(1, len(grown) + 1):
        settings = ModelSettings(temperature=0.7)
        request = replace(whole, model=model, messages=tuple(grown[:count]), settings=settings)
        sent = request_text(request, provider="anthropic", caching=caching)
        plain = request_body(request, provider="anthropic", caching=caching)
        extra = plain.pop("extra_body", {})
        assert json.loads(sent) == {**plain, **extra, "stream": True}
    assert all(message.notes for message in whole.messages)
    assert not large.notes


def without_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [without_marks(item) for item in value]
    if isinstance(value, dict):
        return {k: without_marks(v) for k, v in value.items() if k != "cache_control"}
    return value


def test_caching_can_be_switched_off():
    assert "cache_control" not in str(
        request_body(history(ContractTraits("anthropic")), provider="anthropic", caching=False)
    )


@pytest.mark.parametrize("model", [*(card.prefix for card in CARDS), "claude-next-9", "llama-7"])
@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize("effort", ["", "low", "high", "max"])
def test_no_model_is_sent_a_setting_that_it_refuses(model, thinking, effort):
    settings = ModelSettings(temperature=0.7, top_p=0.9, thinking=thinking, effort=effort)
    body_of(replace(ask(model=model), settings=settings, max_output_tokens=200_000))


@pytest.mark.parametrize(
    ("model", "thinking", "expected"),
    [
        ("claude-opus-5-5", True, {"type": "adaptive", "display": "summarized"}),
        ("claude-opus-5-5", False, {"type": "adaptive", "display": "summarized"}),
        ("claude-sonnet-5-5", False, {"type": "between_tools"}),
        ("claude-sonnet-5", False, {"type": "disabled"}),
        ("claude-opus-4-8", False, None),
        ("claude-haiku-4-5-20251001", True, {"type": "enabled", "budget_tokens": 8_192}),
        ("claude-haiku-4-5", False, None),
        ("some-other-model", True, None),
    ],
)
def test_thinking_is_asked_for_in_the_words_of_the_model(model, thinking, expected):
    request = replace(ask(model=model), settings=ModelSettings(thinking=thinking))
    assert body_of(request).get("thinking") == expected


def test_temperature_is_sent_where_it_is_taken_and_nothing_is_thought():
    settings = ModelSettings(temperature=0.5)
    assert body_of(replace(ask(model="claude-haiku-4-5"), settings=settings))["temperature"] == 0.5
    thoughtful = replace(settings, thinking=True)
    for model, given in (("claude-haiku-4-5", thoughtful), ("claude-opus-5", settings)):
        assert "temperature" not in body_of(replace(ask(model=model), settings=given))


def test_a_turn_that_began_without_thinking_goes_on_without_it():
    request = replace(
        ask(model="claude-sonnet-4-5"),
        messages=(
            Message("user", (Text(text="Look."),)),
            Message("assistant", (ToolCall("sevt_1", "look", {"path": "a"}),)),
            Message("user", (ToolAnswer("sevt_1", (Text(text="seen"),)),)),
        ),
        settings=ModelSettings(thinking=True),
    )
    assert "thinking" not in body_of(request)


def test_empty_texts_and_answers_are_filled_or_left_out():
    request = ModelRequest(
        "m",
        " ",
        (
            Message("user", (Text(text="Look."), Text(text=" \n"))),
            Message("assistant", (Text(text=""), ToolCall("sevt_1", "look", {"path": "a"}))),
            Message("user", (ToolAnswer("sevt_1", (Text(text=""),), is_error=True),)),
            Message("assistant", (Text(text=""),)),
            Message("user", (Text(text="And?"),)),
        ),
        (LOOK,),
    )
    body_of(request)


def test_a_gateway_prefix_does_not_hide_the_model():
    for name in ("anthropic/claude-opus-5", "us.anthropic.claude-opus-5-v1:0", "CLAUDE-OPUS-5"):
        assert card_for(name).prefix == "claude-opus-5"


async def test_nothing_of_ours_travels_beside_the_request():
    """No trace context and no retries of the SDK's own; the key goes as a bearer token."""
    async with served([reply(call("look", path="a"))]) as (provider, api):
        pieces = await pieces_of(provider, ask())
        (headers,) = api.headers
    assert not any(isinstance(piece, TextDelta) for piece in pieces)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert not {"traceparent", "tracestate", "baggage"} & set(headers)


async def test_nothing_is_taken_from_the_environment_neither_address_nor_header_nor_key(
    monkeypatch,
):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example.org")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "of-the-server")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Gateway-Key: of-the-server")
    provider = build(ProviderConfig("anthropic", KEY))
    try:
        assert isinstance(provider, Anthropic)
        assert provider._connected().base_url.host == "api.anthropic.com"
    finally:
        await provider.aclose()
    async with MessagesApi(lambda _request: "Hi.") as api:
        config = ProviderConfig(
            "anthropic", KEY, api.base_url, timeout=PATIENCE, headers={"x-own": "1"}
        )
        provider = build(config)
        try:
            await pieces_of(provider, ask())
        finally:
            await provider.aclose()
    (sent,) = api.headers
    assert sent["x-own"] == "1"
    assert not [name for name, value in sent.items() if "of-the-server" in value]


def test_an_address_that_somebody_typed_is_asked_for_nothing_beside_answers() -> None:
    config = ProviderConfig("anthropic", KEY, "http://127.0.0.1:1")
    assert Anthropic(config).features >= {"memory_20250818"}
    assert Anthropic(replace(config, connect=JudgedConnections())).features == frozenset()
