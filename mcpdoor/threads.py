"""Work with tables from a coroutine of `/mcp`: in a thread that lives on, as do its connections to SQLite."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from jobs.connections import with_healthy_connections

InThread = Callable[..., Awaitable[Any]]


async def in_thread(work: Callable[..., Any], *given: Any) -> Any:
    do = partial(work, *given)
    return await sync_to_async(with_healthy_connections, thread_sensitive=False)(do)
