"""The reference: the official SDK reading typed events over its default transport, nothing around it.

A helper process (`bench.commands`); it is pinned to the core the product is pinned to.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from time import process_time
from typing import Any

from anthropic import AsyncAnthropic

from bench.commands import answer_tasks
from bench.figures import Session
from bench.plan import Load, Turns, run_load, run_turns

MODEL = "claude-bench"


class Reference:
    def __init__(self) -> None:
        self._service = ""
        self._client = AsyncAnthropic(
            api_key="bench",
            max_retries=0,
            open_telemetry={"traces": False, "propagation": False},
        )

    async def perform(self, task: dict[str, Any]) -> dict[str, Any]:
        if self._service != task["service"]:
            self._service = task["service"]
            self._client = self._client.with_options(base_url=self._service)
        match task["what"]:
            case "load":
                return await self._load(Load(**task["load"]))
            case "turns":
                turns = Turns(**task["turns"])
                return await run_turns(turns, partial(self._converse, turns.order), process_time)
            case "first":
                pause = task["pause"]
                return {"ms": [await self._first_delta(pause) * 1000 for _ in range(task["times"])]}
            case "calls":
                return await self._calls(task["body"], task["times"])
            case "input":
                return {"seconds": await self._cost(_asked(f"bench input {task['size']}"))}
        raise ValueError(f"unknown task {task['what']!r}")

    async def _load(self, load: Load) -> dict[str, Any]:
        own = process_time()
        sessions = await run_load(load, partial(self._converse, load.order), watched=[])
        answer = sessions.as_dict()
        # Its own client: what it used is both what was measured and what measured.
        answer["microseconds_per_delta"] = (
            sessions.client_cores / (load.sessions * load.per_second) * 1e6
        )
        answer["watched_cores"], answer["client_cores"] = sessions.client_cores, 0.0
        return answer | {"seconds": process_time() - own}

    async def _converse(self, order: str, _number: int, session: Session) -> None:
        session.asked = time.monotonic()
        async for text in self._texts(_asked(order)):
            session.hear(text, time.monotonic())
        session.ended = time.monotonic()

    async def _first_delta(self, pause: float) -> float:
        await asyncio.sleep(pause)
        began, first = time.monotonic(), 0.0
        async for _text in self._texts(_asked("bench stream 5 0")):
            first = first or time.monotonic()
        return first - began

    async def _calls(self, body: dict[str, Any], times: int) -> dict[str, Any]:
        """Processor seconds of one request with `body`, as the product sent it, its reply read."""
        await self._cost(body)
        used = [await self._cost(body) for _ in range(times)]
        return {"seconds": used}

    async def _cost(self, body: dict[str, Any]) -> float:
        before = process_time()
        stream = await self._client.messages.create(**body | {"stream": True})
        async for _event in stream:
            pass
        return process_time() - before

    async def _texts(self, body: dict[str, Any]) -> Any:
        stream = await self._client.messages.create(**body, stream=True)
        async for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                yield event.delta.text


def _asked(order: str) -> dict[str, Any]:
    return {
        "model": MODEL,
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": order}],
    }


if __name__ == "__main__":
    asyncio.run(answer_tasks(Reference().perform))
