"""Carries hints and streaming text from runs to sockets: the protocol, and the process's own hub.

A nudge says "the log grew"; it carries no content, so a lost one heals with the next. Deltas are the
one thing that travels as content; each names the place of its first character, and the text so far
is kept for whoever connects in mid-answer. Nothing here is durable: the log is.
"""

from __future__ import annotations

from typing import Protocol

from django.conf import settings

from .items import BlockClosed, Delta, Interrupted, Item, Kind, Lagged, Nudge, OpenText
from .local_hub import LocalHub, Subscription

__all__ = [
    "BlockClosed",
    "Delta",
    "Hub",
    "Interrupted",
    "Item",
    "Kind",
    "Lagged",
    "Nudge",
    "OpenText",
    "Subscription",
    "hub",
]


class Hub(Protocol):
    """Writers call from any thread; they never wait and never fail.

    Where several processes share a hub and its carrier is out of reach, readers are nudged once a
    second, so that they follow the log, and told to resync when it is back.
    """

    def subscribe(self, conversation_uid: str, *, only_interrupts: bool = False) -> Subscription:
        """Start to listen, on the running loop. Subscribe first, then take the snapshot, then read
        the log: then nothing is missing."""

    async def snapshot(self, conversation_uid: str) -> tuple[OpenText, ...]:
        """The blocks that are arriving, wherever they arrive. What follows joins on by its offsets."""

    def nudge(self, conversation_uid: str, seq: int) -> None: ...

    def interrupt(self, conversation_uid: str) -> None: ...

    def begin(self, conversation_uid: str) -> None:
        """A run of this process has the conversation now: what another left half said is over."""

    def open(
        self, conversation_uid: str, block: str, kind: Kind, continues: str | None = None
    ) -> None: ...

    def extend(self, conversation_uid: str, block: str, text: str) -> object:
        """Add text to an open block and pass it on; unknown blocks are ignored."""

    def close(self, conversation_uid: str, block: str) -> object: ...

    def stop(self) -> None:
        """Send what waits and let go of threads and connections. For shutdown and tests."""


def _build() -> Hub:
    if settings.AGENTSITE_REDIS_URL:
        from .redis_hub import RedisHub  # noqa: PLC0415 - heavy, imported on first use

        return RedisHub(settings.AGENTSITE_REDIS_URL)
    return LocalHub()


hub: Hub = _build()
"""The process's own."""
