"""Work with tables from a coroutine of `/mcp`: in a thread that keeps no connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async

from jobs.connections import give_back

InThread = Callable[..., Awaitable[Any]]


async def in_thread(work: Callable[..., Any], *given: Any) -> Any:
    def do() -> Any:
        try:
            return work(*given)
        finally:
            give_back()

    return await sync_to_async(do, thread_sensitive=False)()
