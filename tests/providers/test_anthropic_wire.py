"""Splitting the stream ourselves gives what the SDK's typed events give, whatever the reply."""

from __future__ import annotations

import pytest
from anthropic import AsyncAnthropic

from harness.messages import Piece, Unshown
from providers.anthropic import _Reply
from providers.anthropic_request import request_body
from providers.scripted import Reply, call, garbled_call, reply, say, think
from providers.table import ProviderConfig, build
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi
from tests.standins.provider_contract import ask, pieces_of

REPLIES = [
    reply("Hello, world", chunk=3),
    reply(think("Let me see.", signature="signed"), "Here it is.", chunk=4),
    reply(think(redacted_data="c2VjcmV0"), "Done."),
    reply("Looking.", call("look", path="a.py"), call("look", path="b/ä.py"), chunk=5),
    reply(garbled_call("look", '{"path": ')),
    reply(say("Half a pair: \ud83d", "\ude00, and one alone: \ud83d."), chunk=1),
    reply("Line\r\nline\u2028separator\x85next\n\ndata: not an event", chunk=2),
    reply("I would rather not.", end="refusal", detail="policy"),
    reply("Cut", end="max_tokens"),
    reply(call("look", content="x" * 20_000), chunk=20),
]


async def typed_pieces(base_url: str) -> list[Piece]:
    """The same request, its reply read by the SDK."""
    body = request_body(ask(), provider="anthropic", caching=True)
    reading = _Reply()
    pieces: list[Piece] = []
    async with AsyncAnthropic(api_key="key", base_url=base_url, max_retries=0) as client:
        async for event in await client.messages.create(**body, stream=True):
            pieces.extend(reading.pieces(event.to_dict()))
    return [piece for piece in pieces if not isinstance(piece, Unshown)]


# A long reply byte by byte takes long and shows nothing more.
CUTS = [
    (answer, fragment)
    for answer in REPLIES
    for fragment in (0, 1, 7)
    if fragment != 1 or len(str(answer)) <= 10_000
]


@pytest.mark.parametrize(("answer", "fragment"), CUTS)
async def test_our_splitter_and_the_sdk_read_the_same_pieces(answer: Reply, fragment: int):
    async with MessagesApi([answer, answer], fragment=fragment) as api:
        provider = build(ProviderConfig("anthropic", "key", api.base_url, timeout=PATIENCE))
        try:
            ours = await pieces_of(provider, ask())
        finally:
            await provider.aclose()
        assert ours == await typed_pieces(api.base_url)
