"""Calls of MCP tools through our client and through the bare SDK's, in turn; a helper process
(`bench.commands`).

What a run does around a call, such as rules and the log, is no part of it: that is a step (B7).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

import httpx2  # noqa: E402
from mcp import Client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

from bench.commands import answer_tasks  # noqa: E402
from mcpservers.sessions import Listing, Sessions, Where  # noqa: E402

ASKED = {"text": "a word or two"}


async def perform(task: dict[str, Any]) -> dict[str, Any]:
    base = f"http://127.0.0.1:{task['port']}"
    if task["what"] == "door":
        return await _door(task["door"], task["secret"], f"{base}/0/mcp", task["times"])
    if task["what"] == "calls":
        return await _calls(f"{base}/0/mcp", task["times"])
    urls = [f"{base}/{number}/mcp" for number in range(task["servers"])]
    return await _connect(urls)


async def _calls(url: str, times: int) -> dict[str, Any]:
    """Milliseconds of each, by whose client it was."""
    held, where = Sessions(), Where(1, "bench", url)
    taken: dict[str, list[float]] = {"own": [], "sdk": []}
    async with Client(streamable_http_client(url), cache=None) as client:
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "own": lambda: _call(held, where),
            "sdk": lambda: client.call_tool("echo", ASKED),
        }
        for number in range(times):
            for name, act in ways.items():
                began = time.perf_counter()
                await act()
                if number > 2:  # the first ones connect, and fill caches
                    taken[name].append((time.perf_counter() - began) * 1_000)
    await held.close()
    return taken


async def _door(door: str, secret: str, sdk: str, times: int) -> dict[str, Any]:
    """Milliseconds of a call of `/mcp` and of the SDK's own server, by the SDK's client, in turn."""
    taken: dict[str, list[float]] = {"own": [], "sdk": []}
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(door, http_client=http), cache=None) as ours,
        Client(streamable_http_client(sdk), cache=None) as theirs,
    ):
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "own": lambda: ours.call_tool("calculator", {"expression": "1 + 1"}),
            "sdk": lambda: theirs.call_tool("echo", ASKED),
        }
        for number in range(times):
            for name, act in ways.items():
                began = time.perf_counter()
                await act()
                if number > 2:
                    taken[name].append((time.perf_counter() - began) * 1_000)
    return taken


async def _connect(urls: list[str]) -> dict[str, Any]:
    """Seconds until all of them have answered a first call, and until the last has by itself: the slowest."""

    async def first(*asked: str) -> float:
        held = Sessions()
        began = time.perf_counter()
        await asyncio.gather(*(_call(held, Where(1, url, url)) for url in asked))
        took = time.perf_counter() - began
        await held.close()
        return took

    await first(urls[0])
    return {"alone": await first(urls[-1]), "all": await first(*urls)}


async def _call(held: Sessions, where: Where) -> None:
    await held.call(where, "echo", ASKED, seconds=30, on_listing=_nobody_asks)


async def _nobody_asks(_listing: Listing) -> None:
    pass


if __name__ == "__main__":
    asyncio.run(answer_tasks(perform))
