"""Work with tables from a coroutine of `/mcp`: in a thread that lives on, as do its connections to SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from jobs.connections import with_healthy_connections

InThread = Callable[..., Awaitable[Any]]


async def in_thread(work: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.to_thread(with_healthy_connections, partial(work, *given))
