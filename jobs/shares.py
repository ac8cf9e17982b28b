"""Places of something that all share, of which one person has only so many at a time; she waits for
her own, and nobody else does.

On an event loop. Where nobody may wait there is `tools_app.turnstile`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class Shares:
    def __init__(self, each: int) -> None:
        self._each = each
        self._held: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        """By loop and person; each lives as long as somebody holds it or waits."""

    @asynccontextmanager
    async def of(self, who: Hashable) -> AsyncIterator[None]:
        key = (id(asyncio.get_running_loop()), who)
        share = self._held.get(key)
        if share is None:
            share = self._held[key] = asyncio.Semaphore(self._each)
        async with share:
            yield
