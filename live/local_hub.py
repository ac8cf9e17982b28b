"""The hub inside one process: readers by conversation, and the text of the blocks that are open.

Complete where there is one process; `redis_hub` builds on it where there are more.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self
from weakref import WeakValueDictionary

from reading.growingtext import GrowingText

from .items import BlockClosed, Delta, Interrupted, Item, Kind, Lagged, Nudge, OpenText

MAX_WAITING = 1_000
"""Items a slow subscriber may fall behind before deltas are dropped for it; it is told to resync."""


@dataclass(slots=True)
class _Block:
    kind: Kind
    continues: str | None
    text: GrowingText = field(default_factory=GrowingText)


class _Inbox:
    """What was offered to the readers of one event loop, from any thread: however much comes before
    the loop gets to it, it is called once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._offered: deque[tuple[Subscription, Item]] = deque()
        self._called = False

    def put(self, reader: Subscription, item: Item) -> None:
        """Raises RuntimeError when the loop is closed."""
        self._offered.append((reader, item))
        if not self._called:
            # Two threads may both call: the second call finds nothing.
            self._called = True
            try:
                self._loop.call_soon_threadsafe(self._hand_out)
            except RuntimeError:
                self._offered.clear()
                self._called = False
                raise

    def _hand_out(self) -> None:
        # First, so that what is offered from here on calls again.
        self._called = False
        while self._offered:
            reader, item = self._offered.popleft()
            reader.take(item)


_inboxes: WeakValueDictionary[int, _Inbox] = WeakValueDictionary()
"""By the loop's id; each lives as long as a reader of it, and keeps the loop."""


def _inbox_of(loop: asyncio.AbstractEventLoop) -> _Inbox:
    """For the thread of that loop."""
    inbox = _inboxes.get(id(loop))
    if inbox is None:
        inbox = _inboxes[id(loop)] = _Inbox(loop)
    return inbox


class Subscription:
    """Items of one conversation, in order, for one reader on one event loop."""

    def __init__(self, leave: Callable[[Subscription], None], *, only_interrupts: bool) -> None:
        self._leave = leave
        self._only_interrupts = only_interrupts
        self._inbox = _inbox_of(asyncio.get_running_loop())
        # An `asyncio.Queue` takes four times the memory; every socket and every run has one of these.
        self._items: deque[Item] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._lagged = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while not self._items:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        item = self._items.popleft()
        if isinstance(item, Lagged):
            self._lagged = False
        return item

    def close(self) -> None:
        self._leave(self)

    def offer(self, item: Item) -> None:
        """Called from any thread. A closed loop means that the reader is gone."""
        if self._only_interrupts and not isinstance(item, Interrupted):
            return
        try:
            self._inbox.put(self, item)
        except RuntimeError:
            self.close()

    def take(self, item: Item) -> None:
        """On the reader's loop."""
        is_hint = isinstance(item, Nudge | Interrupted)
        if not is_hint and (isinstance(item, Lagged) or len(self._items) >= MAX_WAITING):
            if self._lagged:
                return
            self._lagged = True
            item = Lagged()
        self._items.append(item)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class LocalHub:
    """See `hub.Hub`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[str, set[Subscription]] = defaultdict(set)
        self._blocks: dict[str, dict[str, _Block]] = defaultdict(dict)

    # --- readers ----------------------------------------------------------------------------------

    def subscribe(self, conversation_uid: str, *, only_interrupts: bool = False) -> Subscription:
        def leave(subscription: Subscription) -> None:
            self._unsubscribe(conversation_uid, subscription)

        subscription = Subscription(leave, only_interrupts=only_interrupts)
        with self._lock:
            self._subscribers[conversation_uid].add(subscription)
        return subscription

    async def snapshot(self, conversation_uid: str) -> tuple[OpenText, ...]:
        return self.open_texts(conversation_uid)

    def open_texts(self, conversation_uid: str) -> tuple[OpenText, ...]:
        with self._lock:
            return tuple(
                OpenText(uid, block.kind, block.continues, str(block.text))
                for uid, block in self._blocks.get(conversation_uid, {}).items()
            )

    def open_conversations(self) -> list[str]:
        """Those with text that is arriving in this process."""
        with self._lock:
            return list(self._blocks)

    # --- writers ----------------------------------------------------------------------------------

    def nudge(self, conversation_uid: str, seq: int) -> None:
        self.deliver(conversation_uid, Nudge(seq))

    def interrupt(self, conversation_uid: str) -> None:
        self.deliver(conversation_uid, Interrupted())

    def begin(self, conversation_uid: str) -> None:
        pass

    def open(
        self, conversation_uid: str, block: str, kind: Kind, continues: str | None = None
    ) -> None:
        with self._lock:
            self._blocks[conversation_uid][block] = _Block(kind, continues)

    def extend(self, conversation_uid: str, block: str, text: str) -> Delta | None:
        """Also returns what was passed on, None for a block that is not open."""
        with self._lock:
            held = self._blocks.get(conversation_uid, {}).get(block)
            if held is None:
                return None
            delta = Delta(block, held.kind, len(held.text), text, held.continues)
            held.text.append(text)
            readers = tuple(self._subscribers.get(conversation_uid, ()))
        for reader in readers:
            reader.offer(delta)
        return delta

    def close(self, conversation_uid: str, block: str) -> bool:
        """Also returns whether the block was open."""
        with self._lock:
            blocks = self._blocks.get(conversation_uid)
            if blocks is None or blocks.pop(block, None) is None:
                return False
            if not blocks:
                del self._blocks[conversation_uid]
        self.deliver(conversation_uid, BlockClosed(block))
        return True

    def stop(self) -> None:
        pass

    # --- for a hub of several processes -----------------------------------------------------------

    def deliver(self, conversation_uid: str, item: Item) -> None:
        """Hand an item to the readers of one conversation, from any thread."""
        with self._lock:
            readers = tuple(self._subscribers.get(conversation_uid, ()))
        for reader in readers:
            reader.offer(item)

    def deliver_to_all(self, *items: Item) -> None:
        with self._lock:
            readers = [reader for held in self._subscribers.values() for reader in held]
        for reader in readers:
            for item in items:
                reader.offer(item)

    def _unsubscribe(self, conversation_uid: str, subscription: Subscription) -> None:
        with self._lock:
            readers = self._subscribers.get(conversation_uid)
            if readers:
                readers.discard(subscription)
                if not readers:
                    del self._subscribers[conversation_uid]
