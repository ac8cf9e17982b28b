"""Places of something that all share, of which one person has only so many at a time; she waits for
her own, and nobody else does.

On an event loop, for what works in threads. Where nobody may wait there is `jobs.turnstile`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from threading import Lock
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Shares:
    def __init__(self, each: int) -> None:
        self._each = each
        self._held: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        """By loop and person; each lives as long as somebody holds it or waits."""

    async def run(
        self,
        who: Hashable,
        in_thread: Callable[[Callable[[], T]], Awaitable[T]],
        function: Callable[[], T],
    ) -> T:
        """What `function` gives, which `in_thread` calls, in one of the places of `who`.

        The place is held until the function has ended, also where nobody waits for it any more: a thread
        cannot be stopped. One that had not begun by then never does.
        """
        loop = asyncio.get_running_loop()
        key = (id(loop), who)
        share = self._held.get(key)
        if share is None:
            share = self._held[key] = asyncio.Semaphore(self._each)
        await share.acquire()
        place = _Place()

        def held() -> T:
            if not place.take():
                raise asyncio.CancelledError
            try:
                return function()
            finally:
                if place.end():
                    with suppress(RuntimeError):  # the loop is gone, and all who would wait on it
                        loop.call_soon_threadsafe(share.release)

        try:
            return await in_thread(held)
        finally:
            if place.leave():
                share.release()


class _Place:
    """Taken either by the thread that begins the work or by whoever gives it up. Who is done with it last
    gives it back: mostly who waits, so that the loop need not be called a second time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = self._ended = self._left = False

    def take(self) -> bool:
        """Whether it was still free."""
        with self._lock:
            taken, self._taken = self._taken, True
        return not taken

    def end(self) -> bool:
        """The work has ended: whether nobody waits for it any more."""
        with self._lock:
            self._ended = True
            return self._left

    def leave(self) -> bool:
        """Nobody waits any more: whether no work is under way, nor ever will be."""
        with self._lock:
            self._left = True
            taken, self._taken = self._taken, True
            return self._ended or not taken
