"""Servers that speak almost like OpenAI: what they leave out or do differently is put up with."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, get_args

import pytest

from harness.content import Base64Source, Image, Text
from harness.errors import (
    BadCredentials,
    BillingRefused,
    BrokenStream,
    ContextTooLong,
    ProviderError,
)
from harness.messages import (
    Message,
    ModelSettings,
    ReplyDone,
    TextDone,
    ThinkingDone,
    ToolAnswer,
    ToolCall,
    ToolCallDone,
    Usage,
)
from harness.modelcards import UNSEEN
from harness.provider import Provider
from providers.openai_compatible import ENDS
from providers.openai_request import request_body
from providers.scripted import Script
from providers.table import ProviderConfig, build
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi
from tests.standins.openai_wire import check_request
from tests.standins.provider_contract import PIXEL, ask, pieces_of, pieces_until_error
from tests.standins.wire import HttpFault

KEY = "sk-do-not-show-1234567890"


@asynccontextmanager
async def served(script: Script, **options: Any) -> AsyncIterator[Provider]:
    async with MessagesApi(script, **options) as api:
        url = f"{api.base_url}/v1"
        provider = build(ProviderConfig("openai_compatible", KEY, url, timeout=PATIENCE))
        try:
            yield provider
        finally:
            await provider.aclose()


def stream_of(*chunks: Any, done: bool = True) -> HttpFault:
    lines = [f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks]
    if done:
        lines.append("data: [DONE]\n\n")
    return HttpFault(200, "".join(lines).encode(), {"content-type": "text/event-stream"})


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece_of_call(arguments: Any, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return delta(tool_calls=[{"function": function, **fields}])


def test_every_finish_reason_of_the_sdk_has_a_meaning():
    """A new one in the SDK's type fails here."""
    from openai.types.chat.chat_completion_chunk import (  # noqa: PLC0415 - heavy
        Choice,
    )

    annotation = Choice.model_fields["finish_reason"].annotation
    (literal, _) = get_args(annotation)
    assert set(get_args(literal)) == set(ENDS)


async def test_missing_usage_and_finish_reason_are_put_up_with():
    async with served([stream_of(delta(content="Hello"))]) as provider:
        pieces = await pieces_of(provider, ask())
    assert pieces[1:] == [TextDone(0, "Hello"), ReplyDone("end_turn", Usage())]


@pytest.mark.parametrize(
    ("told", "output"),
    [
        ({"completion_tokens": 50, "total_tokens": 150}, 50),
        ({"completion_tokens": 50, "total_tokens": 450}, 350),
        ({"completion_tokens": 50}, 50),
        ({"completion_tokens": 50, "total_tokens": 0}, 50),
    ],
    ids=["usual", "thought-in-the-sum-alone", "no-sum", "empty-sum"],
)
async def test_what_was_thought_counts_where_it_stands_in_the_sum_alone(told, output):
    usage = {"choices": [], "usage": {"prompt_tokens": 100, **told}}
    async with served([stream_of(delta("stop", content="Hi"), usage)]) as provider:
        last = (await pieces_of(provider, ask()))[-1]
    assert isinstance(last, ReplyDone)
    assert last.usage == Usage(input_tokens=100, output_tokens=output)


async def test_a_finish_reason_without_an_end_mark_is_enough():
    async with served([stream_of(delta(content="Hi"), delta("stop"), done=False)]) as provider:
        assert isinstance((await pieces_of(provider, ask()))[-1], ReplyDone)


async def test_a_stream_with_neither_is_broken():
    async with served([stream_of(delta(content="Hi"), done=False)]) as provider:
        _, error = await pieces_until_error(provider, ask())
    assert isinstance(error, BrokenStream)


@pytest.mark.parametrize(
    "pieces",
    [
        [piece_of_call('{"path"', "look", index=0, id="1"), piece_of_call(':"a"}', index=0)],
        [piece_of_call('{"path":"a"}', "look")],
        [piece_of_call('{"path"', "look"), piece_of_call(':"a"}')],
        [piece_of_call({"path": "a"}, "look", index=0)],
    ],
    ids=["by number", "without number or id", "pieces without number", "as an object"],
)
async def test_a_call_is_put_together_however_it_comes(pieces):
    async with served([stream_of(*pieces, delta("stop"))]) as provider:
        first, end = await pieces_of(provider, ask())
    assert first == ToolCallDone(0, "look", {"path": "a"})
    assert isinstance(end, ReplyDone)
    assert end.end == "tool_use", "whatever reason the server gave"


@pytest.mark.parametrize("number", [{"index": 0}, {}], ids=["all numbered 0", "not numbered"])
async def test_two_calls_are_told_apart_by_their_ids(number):
    script = stream_of(
        piece_of_call('{"path":"a"}', "look", id="1", **number),
        piece_of_call('{"path":"b"}', "look", id="2", **number),
        delta("tool_calls"),
    )
    async with served([script]) as provider:
        pieces = await pieces_of(provider, ask())
    assert pieces[:2] == [
        ToolCallDone(0, "look", {"path": "a"}),
        ToolCallDone(1, "look", {"path": "b"}),
    ]


async def test_pieces_of_two_calls_may_be_mixed():
    script = stream_of(
        piece_of_call('{"path":', "look", index=0, id="1"),
        piece_of_call('{"path":', "look", index=1, id="2"),
        piece_of_call('"a"}', index=0),
        piece_of_call('"b"}', index=1),
        delta("tool_calls"),
    )
    async with served([script]) as provider:
        pieces = await pieces_of(provider, ask())
    assert [dict(p.input) for p in pieces if isinstance(p, ToolCallDone)] == [
        {"path": "a"},
        {"path": "b"},
    ]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
async def test_reasoning_is_thinking_by_either_name(field):
    script = stream_of(delta(**{field: "Hm."}), delta(content="Yes."), delta("stop"))
    async with served([script]) as provider:
        pieces = await pieces_of(provider, ask())
    assert [p for p in pieces if isinstance(p, ThinkingDone | TextDone)] == [
        ThinkingDone(0, "Hm."),
        TextDone(1, "Yes."),
    ]


async def test_an_error_in_the_stream_is_no_text():
    script = stream_of(delta(content="Half"), {"error": {"message": "out of memory"}})
    async with served([script]) as provider:
        _, error = await pieces_until_error(provider, ask())
    assert isinstance(error, BrokenStream)
    assert "out of memory" in str(error)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, {"code": "insufficient_quota", "message": "exceeded your quota"}, BillingRefused),
        (400, {"code": "context_length_exceeded", "message": "too much"}, ContextTooLong),
        (400, {"message": "This model's maximum context length is 8 tokens."}, ContextTooLong),
        (401, "plain text", BadCredentials),
    ],
)
async def test_errors_are_understood_by_code_and_words(
    status: int, error: Any, kind: type[ProviderError]
):
    async with served([HttpFault(status, {"error": error})]) as provider:
        _, caught = await pieces_until_error(provider, ask())
    assert type(caught) is kind


async def test_the_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    async with served([], api_key="another-key") as provider:
        with pytest.raises(BadCredentials) as caught:
            await pieces_of(provider, ask())
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown + repr(caught.value) + caplog.text


def test_pictures_of_an_answer_follow_in_the_users_message():
    picture = Image(source=Base64Source(media_type="image/png", data=PIXEL))
    request = replace(
        ask(),
        messages=(
            Message("user", (Text(text="Look."),)),
            Message("assistant", (ToolCall("sevt_1", "look", {"path": "a"}),)),
            Message("user", (ToolAnswer("sevt_1", (Text(text="seen"), picture)),)),
        ),
    )
    body = request_body(request)
    check_request(body)
    answer, shown = body["messages"][-2:]
    assert (answer["role"], answer["content"]) == ("tool", "seen")
    assert shown["role"] == "user"
    assert shown["content"][0]["image_url"]["url"].endswith(PIXEL)


def test_a_model_that_cannot_see_is_told_so_in_the_place_of_a_picture():
    picture = Image(source=Base64Source(media_type="image/png", data=PIXEL))
    request = replace(ask(model="gpt-oss-120b"), messages=(Message("user", (picture,)),))
    assert request_body(request)["messages"][-1]["content"] == UNSEEN.text
    seeing = request_body(replace(request, model="gpt-5.1"))
    assert seeing["messages"][-1]["content"][0]["type"] == "image_url"


def test_a_reasoning_model_gets_its_own_limit_and_no_temperature():
    settings = ModelSettings(temperature=0.5, effort="max")
    body = request_body(replace(ask(model="gpt-5.1"), settings=settings))
    assert body["max_completion_tokens"] == 16_384
    assert body["reasoning_effort"] == "high"
    assert not {"max_tokens", "temperature"} & set(body)
    plain = request_body(replace(ask(model="qwen3"), settings=settings))
    assert (plain["max_tokens"], plain["temperature"]) == (16_384, 0.5)
    assert "reasoning_effort" not in plain


async def test_nothing_is_taken_from_the_environment_neither_header_nor_organisation(monkeypatch):
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "of-the-server")
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", "X-Gateway-Key: of-the-server\nAuthorization: of-the-server"
    )
    async with MessagesApi(lambda _request: "Hi.") as api:
        provider = build(
            ProviderConfig(
                "openai_compatible",
                KEY,
                f"{api.base_url}/v1",
                timeout=PATIENCE,
                headers={"x-own": "1"},
            )
        )
        try:
            await pieces_of(provider, ask())
        finally:
            await provider.aclose()
    (sent,) = api.headers
    assert (sent["x-own"], sent["authorization"]) == ("1", f"Bearer {KEY}")
    assert not [name for name, value in sent.items() if "of-the-server" in value]
