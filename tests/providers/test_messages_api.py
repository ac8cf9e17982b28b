"""The stand-in is as strict as the service, or the other tests prove nothing."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from harness.content import Text
from harness.errors import BadRequest
from harness.messages import Message, ModelRequest, TextDone
from providers.table import ProviderConfig, build
from tests.patience import PATIENCE
from tests.standins import openai_wire
from tests.standins.anthropic_rules import Refused, check_request
from tests.standins.messages_api import MessagesApi
from tests.standins.provider_contract import ask, pieces_of, pieces_until_error

TOOL = {"name": "look", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
ANSWER = {"type": "tool_result", "tool_use_id": "t1", "content": "seen"}
MARK = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks) or "Hello"}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks) or "Hello"}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "max_tokens": 16,
        "stream": True,
        "messages": list(messages),
        "tools": [TOOL],
        **fields,
    }


def test_a_proper_request_is_taken():
    check_request(body(user(), assistant(CALL), user(ANSWER, {"type": "text", "text": "And?"})))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (body(), "at least one message"),
        (body(assistant()), "first message"),
        (body(user(), user()), "roles must alternate"),
        (body(user(), assistant(CALL)), "without `tool_result`"),
        (body(user(), assistant(CALL), user()), "without `tool_result`"),
        (body(user(), assistant(), user(ANSWER)), "unexpected `tool_use_id`"),
        (body(user(), assistant(CALL), user(ANSWER, ANSWER)), "single result"),
        (body(user(), assistant(CALL), user({"type": "text", "text": "x"}, ANSWER)), "before"),
        (body(user(), assistant(CALL), user(ANSWER), tools=[]), "must define tools"),
        (body(user(), assistant(CALL, CALL), user(ANSWER)), "unique"),
        (body(user({"type": "text", "text": ""})), "non-empty"),
        (body(user({"type": "text", "text": " \n"})), "non-whitespace"),
        (body({"role": "user", "content": []}), "must have content"),
        (body(user(), assistant({"type": "text", "text": "x "})), "trailing whitespace"),
        (body(user(), max_tokens=0), "max_tokens"),
        (body(user(), surprise=1), "Extra inputs"),
        (body(user(), tools=[TOOL, TOOL]), "unique"),
        (body(user(), tools=[], tool_choice={"type": "auto"}), "tool_choice"),
        (body(user(MARK, MARK, MARK, MARK, MARK)), "maximum of 4"),
        (body(user(), model="claude-opus-5", temperature=0.5), "deprecated"),
        (body(user(), model="claude-opus-5-5", thinking={"type": "disabled"}), "not supported"),
        (body(user(), assistant({"type": "thinking", "thinking": "x"})), "signature"),
        (
            body(user({"type": "image", "source": {"type": "base64", "media_type": "image/bmp"}})),
            "media_type",
        ),
    ],
)
def test_each_rule_is_held(wrong, said):
    with pytest.raises(Refused, match=said):
        check_request(wrong)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "at least one"),
        ([{"role": "user", "content": ""}], "empty"),
        ([{"role": "tool", "tool_call_id": "1", "content": "x"}], "preceding"),
        (
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}],
                },
                {"role": "user", "content": "x"},
            ],
            "did not have response",
        ),
    ],
)
def test_chat_completions_have_their_rules_too(messages, said):
    with pytest.raises(Refused, match=said):
        openai_wire.check_request({"model": "m", "stream": True, "messages": messages})


async def test_a_refused_request_is_a_bad_request_and_costs_no_reply():
    words = (Text(text="x"),)
    twice = ModelRequest("m", "", (Message("user", words), Message("user", words)))
    async with MessagesApi(["Hello"]) as api:
        provider = build(ProviderConfig("anthropic", "key-12345", api.base_url))
        _, error = await pieces_until_error(provider, twice)
        assert isinstance(error, BadRequest)
        assert "roles must alternate" in str(error)
        assert len(api.refusals) == 1
        assert TextDone(0, "Hello") in await pieces_of(provider, ask())
        await provider.aclose()


async def test_as_a_process_it_answers_as_the_demo_does():
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.standins.messages_api", "--port", "0", "--demo"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
        url = line.split("on ", 1)[1].split(",")[0]
        provider = build(ProviderConfig("anthropic", "any-key", url))
        pieces = await pieces_of(provider, ask("Hello"))
        await provider.aclose()
    finally:
        process.terminate()
        await process.wait()
    (text,) = [piece.text for piece in pieces if isinstance(piece, TextDone)]
    assert "not a language model" in text
