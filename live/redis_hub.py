"""The hub of several processes: the local one, with Redis pub/sub between them.

Readers of this process are told directly, those of others through `redis_line`. Whatever fails there
costs live text only: writers never wait, and readers follow the log until Redis is back.
"""

from __future__ import annotations

import threading

from .items import BlockClosed, Interrupted, Kind, Nudge, OpenText
from .local_hub import LocalHub, Subscription
from .redis_line import OUT_OF_REACH, RedisLine


class RedisHub:
    """See `hub.Hub`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._local = LocalHub()
        self._lock = threading.Lock()
        self._line: RedisLine | None = None

    # --- readers ----------------------------------------------------------------------------------

    def subscribe(self, conversation_uid: str, *, only_interrupts: bool = False) -> Subscription:
        subscription = self._local.subscribe(conversation_uid, only_interrupts=only_interrupts)
        self._running().listen(live=not only_interrupts)
        return subscription

    async def snapshot(self, conversation_uid: str) -> tuple[OpenText, ...]:
        """Returns when this process is sure to hear what comes after it, or what is known here if
        Redis is out of reach."""
        line = self._running()
        try:
            elsewhere = await line.snapshot(conversation_uid)
        except OUT_OF_REACH:
            elsewhere = ()
        here = self._local.open_texts(conversation_uid)
        known = {text.block for text in here}
        return (*(text for text in elsewhere if text.block not in known), *here)

    # --- writers ----------------------------------------------------------------------------------

    def nudge(self, conversation_uid: str, seq: int) -> None:
        self._local.nudge(conversation_uid, seq)
        self._running().send(conversation_uid, Nudge(seq), at_once=True)

    def interrupt(self, conversation_uid: str) -> None:
        self._local.interrupt(conversation_uid)
        self._running().send(conversation_uid, Interrupted(), at_once=True)

    def begin(self, conversation_uid: str) -> None:
        self._running().send(conversation_uid, None, at_once=True)

    def open(
        self, conversation_uid: str, block: str, kind: Kind, continues: str | None = None
    ) -> None:
        self._local.open(conversation_uid, block, kind, continues)

    def extend(self, conversation_uid: str, block: str, text: str) -> None:
        delta = self._local.extend(conversation_uid, block, text)
        if delta is not None:
            self._running().send(conversation_uid, delta, at_once=delta.offset == 0)

    def close(self, conversation_uid: str, block: str) -> None:
        if self._local.close(conversation_uid, block):
            self._running().send(conversation_uid, BlockClosed(block))

    def stop(self) -> None:
        with self._lock:
            line, self._line = self._line, None
        if line is not None:
            line.stop()

    def _running(self) -> RedisLine:
        with self._lock:
            if self._line is None:
                self._line = RedisLine(self._url, self._local)
            return self._line
