"""The Messages API on loopback in a thread of its own, for conversations that speak to it by the SDK."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from providers.scripted import reply
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi
from tests.standins.wire import HttpFault


@dataclass
class Service:
    steps: list[Any] = field(default_factory=list)
    """What it answers, one after another; then that it is done."""
    api: MessagesApi = field(init=False)

    def answer(self, _request: Any) -> Any:
        return self.steps.pop(0) if self.steps else reply("Done.")

    @property
    def last(self) -> dict[str, Any]:
        return self.api.bodies[-1]


@contextmanager
def serving(settings: Any) -> Iterator[Service]:
    """The deployment's key leads to it."""
    held = Service()
    begun, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with MessagesApi(held.answer) as held.api:
            begun.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert begun.wait(PATIENCE)
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "k", "base_url": held.api.base_url}}
    try:
        yield held
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(PATIENCE)
        loop.close()


Block = tuple[dict[str, Any], tuple[dict[str, Any], ...]]
"""As it begins, and its deltas."""


def spoken(text: str) -> Block:
    return {"type": "text", "text": ""}, ({"type": "text_delta", "text": text},)


def summed(summary: str) -> Block:
    """A summary that the service made by itself."""
    begun = {"type": "compaction", "content": None, "signature": "signed"}
    told = {"type": "compaction_delta", "content": summary, "encrypted_content": "sealed"}
    return begun, (told,)


def streamed(
    *blocks: Block,
    usage: dict[str, Any],
    stop: str = "end_turn",
    read: int = 1,
    **more: Any,
) -> HttpFault:
    """A reply of these blocks as the service streams it; without `stop` it breaks off behind them. `read` is
    what it says at first that it has read, `more` stands in its last event."""
    first = {"input_tokens": read, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": first}
    told: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (block, deltas) in enumerate(blocks):
        told.append({"type": "content_block_start", "index": index, "content_block": block})
        told += ({"type": "content_block_delta", "index": index, "delta": each} for each in deltas)
        told.append({"type": "content_block_stop", "index": index})
    if stop:
        ending = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage, **more}
        told += [ending, {"type": "message_stop"}]
    text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in told)
    return HttpFault(200, text.encode(), {"content-type": "text/event-stream"})
