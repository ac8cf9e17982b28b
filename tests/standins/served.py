"""The Messages API on loopback in a thread of its own, for conversations that speak to it by the SDK."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from providers.scripted import reply
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi


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
