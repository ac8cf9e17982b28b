"""One read for all who want the same at the same time.

Hundreds follow one conversation, and each event has all of them ask the tables at once. Who asks
while an equal read still waits for its thread joins it; a read that has begun takes nobody in, because
it may be too old for who comes now. So everybody's answer is as fresh as a read of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
InThread = Callable[[Callable[[], T]], Awaitable[T]]


class Joining(Generic[T]):
    def __init__(self) -> None:
        self._waiting: WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[Hashable, asyncio.Future[T]]
        ] = WeakKeyDictionary()

    async def read(self, key: Hashable, function: Callable[[], T], in_thread: InThread[T]) -> T:
        """What `function` returns or raises, called after this was asked for. `in_thread` runs it in a
        thread and returns what it returns.

        Equal keys mean that it does not matter whose function is called, and in whose thread.
        """
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, {})
        shared = waiting.get(key)
        if shared is None:

            def begin() -> T:
                # In the thread, before it looks: from here on nobody joins.
                del waiting[key]
                return function()

            shared = loop.create_task(_run(begin, in_thread))
            shared.add_done_callback(_heard)
            waiting[key] = shared
        # One who leaves takes nothing from the others.
        return await asyncio.shield(shared)


async def _run(begin: Callable[[], T], in_thread: InThread[T]) -> T:
    return await in_thread(begin)


def _heard(shared: asyncio.Future[T]) -> None:
    """So that an error nobody waited for any more is not complained of."""
    if not shared.cancelled():
        shared.exception()
