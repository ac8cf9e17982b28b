"""Streaming text of one run on its way to the hub: coalesced, and checkpointed now and then.

The first piece of a block goes out at once, what follows within a short window in one piece: below
two token gaps a window merges nothing and only costs timers, far above it text looks jerky. The
window's length is `AGENTSITE_DELTA_MILLISECONDS`. A reply that says when it trickles is read about
as often.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from django.conf import settings

from harness.ports import LiveBlock
from jobs.engine import engine
from live.hub import Hub

from .models import Run
from .partials import Partial, save_partials

CHECKPOINT_SECONDS = 1.0
"""How much of a block that is still arriving a killed worker may lose."""

AT_ONCE = 32
"""Turns of a tick: a few milliseconds' work."""
EARLY = 0.25
"""The part of the window by which a turn may come early, to be taken with one that is due."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    block: LiveBlock
    unsent: list[str] = field(default_factory=list)
    has_begun: bool = False
    is_due: bool = False
    saved: int = 0
    """Characters that the last checkpoint holds."""


def _resolve(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class _Ticks:
    """Sends on what the runs of an event loop have gathered, a group of runs at a time. A timer for each
    run would wake the loop, and that of the sockets, hundreds of times as often; all runs at once would
    make the last wait for all the others."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: deque[tuple[float, Callable[[], None]]] = deque()
        self._armed = False
        self._window = 0.0

    def add(self, send: Callable[[], None]) -> None:
        """Have `send` called within the window from now."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the engine was stopped and started again
            self._loop, self._due, self._armed = loop, deque(), False
        if not self._armed:
            self._window = settings.AGENTSITE_DELTA_MILLISECONDS / 1000
        at = loop.time() + self._window
        self._due.append((at, send))
        if not self._armed:
            self._armed = True
            loop.call_at(at, self._tick, loop)

    async def next(self) -> None:
        """Wait until one's turn comes, within the window."""
        came = asyncio.get_running_loop().create_future()
        self.add(partial(_resolve, came))
        await came

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self._loop:
            return
        due, sent = self._due, 0
        soon = loop.time() + self._window * EARLY
        try:
            while due and due[0][0] <= soon and sent < AT_ONCE:
                _at, send = due.popleft()
                sent += 1
                try:
                    send()
                except Exception:
                    # Others wait for the same tick.
                    logger.exception("streaming text could not be sent on")
        finally:
            self._armed = bool(due)
            if due:
                # A moment that has passed comes next, after what else the loop has to do.
                loop.call_at(due[0][0], self._tick, loop)


_ticks = _Ticks()
"""The process's own."""


class LiveText:
    """A `harness.ports.Live` for one conversation; used on one event loop."""

    def __init__(self, hub: Hub, conversation_uid: str, conversation_id: int, run: Run) -> None:
        self._hub = hub
        self._uid = conversation_uid
        self._conversation_id = conversation_id
        self._run = run
        self._blocks: dict[str, _Waiting] = {}
        hub.begin(conversation_uid)

    def begin(self, block: LiveBlock) -> None:
        self._blocks[block.uid] = _Waiting(block)
        self._hub.open(self._uid, block.uid, block.kind, block.continues)

    def delta(self, block: LiveBlock, text: str) -> None:
        held = self._blocks[block.uid]
        if not held.has_begun:
            held.has_begun = True
            self._hub.extend(self._uid, block.uid, text)
            return
        held.unsent.append(text)
        if not held.is_due:
            held.is_due = True
            _ticks.add(partial(self._send_due, held))

    def end(self, block: LiveBlock) -> None:
        held = self._blocks.pop(block.uid, None)
        if held is not None:
            self._hub.close(self._uid, block.uid)

    def abandon(self) -> None:
        """Forget what is open, when the run ends in a way that stored nothing of it."""
        for held in list(self._blocks.values()):
            self.end(held.block)

    async def stride(self) -> None:
        """Send on what was gathered, then wait until others would have: what comes meanwhile is read
        and sent on in one piece."""
        for held in self._blocks.values():
            if held.unsent:
                self._send(held)
        await _ticks.next()

    async def keep_checkpoints(self) -> None:
        """Store what is open about once a second, until cancelled."""
        await _keeper.keep(self)

    async def checkpoint(self) -> None:
        """Store what is open now, if it has grown."""
        await _checkpoint((self,))

    def grown(self) -> list[tuple[_Waiting, Partial]]:
        """What has grown since it was stored, with what to store of it."""
        return [
            (
                held,
                Partial(self._conversation_id, self._run.pk, held.block, str(held.block.text)),
            )
            for held in self._blocks.values()
            if len(held.block.text) > held.saved
        ]

    def _send_due(self, held: _Waiting) -> None:
        held.is_due = False
        if held.unsent:
            self._send(held)

    def _send(self, held: _Waiting) -> None:
        text = "".join(held.unsent)
        held.unsent.clear()
        self._hub.extend(self._uid, held.block.uid, text)


async def _checkpoint(texts: Collection[LiveText]) -> None:
    grown = [(held, len(held.block.text), kept) for text in texts for held, kept in text.grown()]
    if not grown:
        return
    await engine.in_database(save_partials, [kept for _held, _length, kept in grown])
    for held, length, _kept in grown:
        held.saved = length


class _Keeper:
    """Checkpoints all runs of an event loop together: one write a second, however many stream."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kept: set[LiveText] = set()
        self._work: asyncio.Task[None] | None = None

    async def keep(self, text: LiveText) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the engine was stopped and started again
            self._loop, self._kept, self._work = loop, set(), None
        self._kept.add(text)
        if self._work is None:
            self._work = loop.create_task(self._go_on())
        try:
            await loop.create_future()
        finally:
            self._kept.discard(text)
            if not self._kept and self._loop is loop:
                self._work.cancel()
                self._work = None

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            try:
                await _checkpoint(tuple(self._kept))
            except Exception:
                # What was not stored counts as grown the next time.
                logger.exception("streaming text could not be checkpointed")


_keeper = _Keeper()
"""The process's own."""
