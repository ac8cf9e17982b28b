"""What waits to be sent to one client, in order and within bounds.

Items are never dropped; their senders wait for them, which bounds them. Streaming text is dropped
when a client cannot keep up, and replaced by one snapshot when it can again. What an item looks like
on the wire is the writer's part.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from live.arriving import Snapshot
from live.items import Delta

MAX_WAITING_TEXT = 64 * 1024
"""Characters of streaming text that may wait: some minutes of one answer."""

_DELTA_COST = 64
"""What a delta counts beside its text, so that many tiny ones are bounded too."""


class Outbox:
    """One writer (`run`), any number of senders on the same event loop."""

    def __init__(
        self, write: Callable[[Any], Awaitable[None]], snapshot: Callable[[], Awaitable[Snapshot]]
    ) -> None:
        self._write = write
        self._snapshot = snapshot
        self._waiting: deque[tuple[Any, asyncio.Future[None] | None]] = deque()
        self._text = 0
        self._lagging = False
        self._over = False
        self._wanted: asyncio.Future[None] | None = None
        """Done when there is something to do; an `asyncio.Event` takes thrice the calls."""

    def put(self, frame: Any) -> None:
        """Send `frame` after what waits already."""
        self._add(frame, None)

    async def deliver(self, frame: Any) -> None:
        """Send `frame` and return when it is off our hands, or when the connection has ended."""
        if self._over:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(frame, done)
        await done

    def put_text(self, delta: Delta) -> None:
        """Send `delta` soon, together with its neighbours, or leave it to a later snapshot."""
        if self._lagging:
            return
        if self._text > MAX_WAITING_TEXT:
            self.catch_up()
            return
        self._text += _cost(delta)
        self._add(delta, None)

    def catch_up(self) -> None:
        """Drop the text that waits; a snapshot follows as soon as everything else is out."""
        self._lagging = True
        self._waiting = deque(item for item in self._waiting if not isinstance(item[0], Delta))
        self._text = 0
        self._rouse()

    async def run(self) -> None:
        """Write until cancelled, or until the connection fails, which it raises."""
        done: asyncio.Future[None] | None = None
        try:
            while True:
                while not (self._waiting or self._lagging):
                    self._wanted = asyncio.get_running_loop().create_future()
                    await self._wanted
                while self._waiting:
                    frame, done = self._next()
                    await self._write(frame)
                    _finish(done)
                if self._lagging:
                    # Deltas that come from now on join on to the snapshot, so it goes before them.
                    self._lagging = False
                    self._waiting.appendleft((await self._snapshot(), None))
        finally:
            self._over = True
            _finish(done)
            for _frame, waiter in self._waiting:
                _finish(waiter)
            self._waiting.clear()

    def _add(self, frame: Any, done: asyncio.Future[None] | None) -> None:
        if self._over:
            return
        self._waiting.append((frame, done))
        self._rouse()

    def _rouse(self) -> None:
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    def _next(self) -> tuple[Any, asyncio.Future[None] | None]:
        frame, done = self._waiting.popleft()
        if not isinstance(frame, Delta):
            return frame, done
        self._text -= _cost(frame)
        texts = [frame.text]
        end = frame.offset + len(frame.text)
        while self._waiting:
            following = self._waiting[0][0]
            if (
                not isinstance(following, Delta)
                or following.block != frame.block
                or following.offset != end
            ):
                break
            self._waiting.popleft()
            self._text -= _cost(following)
            texts.append(following.text)
            end += len(following.text)
        return (frame if len(texts) == 1 else replace(frame, text="".join(texts))), None


def _cost(delta: Delta) -> int:
    return len(delta.text) + _DELTA_COST


def _finish(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
