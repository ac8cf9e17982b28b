"""How a run hears that a person interrupted it, whichever process the person's request came to.

The hub's hint comes at once and may be lost; where there are several processes one look a second at
the table, for all runs of this process together, makes up for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from django.conf import settings
from django.db.models import Max

from harness.kit import Signal
from jobs.engine import engine
from live.hub import hub

from .models import Conversation, Event

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class Interrupts:
    """For the runs of one event loop."""

    def __init__(self) -> None:
        self._watched: dict[int, Callable[[int], None]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def watch(
        self, conversation: Conversation, signal: Signal, known_seq: Callable[[], int]
    ) -> None:
        """Set `signal` on each interrupt behind `known_seq()`, until cancelled. One the run has read
        already is not signalled, so that a late hint cannot stop what came after it."""

        def interrupt(seq: int) -> None:
            if seq > known_seq():
                signal.interrupt()

        subscription = hub.subscribe(conversation.uid, only_interrupts=True)
        async with subscription as hints, self._looked_for(conversation.pk, interrupt):
            async for _hint in hints:
                latest = await engine.in_database(latest_interrupts, [conversation.pk])
                interrupt(latest.get(conversation.pk, 0))

    @asynccontextmanager
    async def _looked_for(self, pk: int, interrupt: Callable[[int], None]) -> AsyncIterator[None]:
        self._watched[pk] = interrupt
        several = settings.AGENTSITE_REDIS_URL or settings.AGENTSITE_BROKER_URL
        if several and (self._looking is None or self._looking.done()):
            self._looking = asyncio.ensure_future(self._look())
        try:
            yield
        finally:
            del self._watched[pk]

    async def _look(self) -> None:
        """As long as anything runs."""
        while self._watched:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                latest = await engine.in_database(latest_interrupts, list(self._watched))
            except Exception:
                logger.exception("interrupts could not be looked for")
                continue
            for pk, seq in latest.items():
                if pk in self._watched:
                    self._watched[pk](seq)


def latest_interrupts(conversations: Collection[int]) -> dict[int, int]:
    """By conversation, the place of the last interrupt that no run has heeded."""
    waiting = Event.objects.filter(
        conversation__in=conversations, type="user.interrupt", processed_at=None
    ).order_by()
    rows = waiting.values("conversation_id").annotate(latest=Max("seq"))
    return {row["conversation_id"]: row["latest"] for row in rows}


interrupts = Interrupts()
"""The process's own."""
