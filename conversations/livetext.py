"""Streaming text of one run on its way to the hub: coalesced, and checkpointed now and then.

The first piece of a block goes out at once, what follows within a short window in one piece: below
two token gaps a window merges nothing and only costs timers, far above it text looks jerky. The
window's length is `AGENTSITE_DELTA_MILLISECONDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from django.conf import settings

from harness.ports import LiveBlock
from jobs.engine import engine
from jobs.prepared import Prepared

from .hub import Hub
from .models import Event, PartialBlock, Run

CHECKPOINT_SECONDS = 1.0
"""How much of a block that is still arriving a killed worker may lose."""

_LEFT = Prepared(
    lambda given: PartialBlock.objects.filter(conversation=given.conversation).order_by("id")
)


@dataclass(slots=True)
class _Waiting:
    block: LiveBlock
    unsent: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    is_due: bool = False
    saved_pieces: int = 0


class _Tick:
    """Sends on what all runs of an event loop have gathered, in one go: a timer for each would wake the
    loop, and that of the sockets, hundreds of times as often."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: list[Callable[[], None]] = []

    def add(self, send: Callable[[], None]) -> None:
        """Have `send` called at the next tick, within the window from now."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the engine was stopped and started again
            self._loop, self._due = loop, []
        if not self._due:
            loop.call_later(settings.AGENTSITE_DELTA_MILLISECONDS / 1000, self._send_all)
        self._due.append(send)

    def _send_all(self) -> None:
        due, self._due = self._due, []
        for send in due:
            send()


_tick = _Tick()
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
        first = not held.text
        held.text.append(text)
        if first:
            self._hub.extend(self._uid, block.uid, text)
            return
        held.unsent.append(text)
        if not held.is_due:
            held.is_due = True
            _tick.add(partial(self._send, held))

    def end(self, block: LiveBlock) -> None:
        held = self._blocks.pop(block.uid, None)
        if held is not None:
            self._hub.close(self._uid, block.uid)

    def abandon(self) -> None:
        """Forget what is open, when the run ends in a way that stored nothing of it."""
        for held in list(self._blocks.values()):
            self.end(held.block)

    async def keep_checkpoints(self) -> None:
        """Store what is open about once a second, until cancelled."""
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            await self.checkpoint()

    async def checkpoint(self) -> None:
        """Store what is open now, if it has grown."""
        grown = [held for held in self._blocks.values() if len(held.text) > held.saved_pieces]
        if not grown:
            return
        texts = [(held.block, "".join(held.text)) for held in grown]
        for held in grown:
            held.saved_pieces = len(held.text)
        await engine.in_database(save_partials, self._conversation_id, self._run, texts)

    def _send(self, held: _Waiting) -> None:
        held.is_due = False
        text = "".join(held.unsent)
        held.unsent.clear()
        self._hub.extend(self._uid, held.block.uid, text)


def save_partials(conversation_id: int, run: Run, texts: list[tuple[LiveBlock, str]]) -> None:
    """Checkpoint text that is still arriving, unless the run lost its claim meanwhile."""
    if not Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).exists():
        return
    for block, text in texts:
        PartialBlock.objects.update_or_create(
            uid=block.uid,
            defaults={
                "conversation_id": conversation_id,
                "kind": block.kind,
                "model_request_id": block.model_request_id,
                "continues": block.continues,
                "text": text,
            },
        )


def take_partials(conversation_id: int) -> list[tuple[LiveBlock, str]]:
    """What a lost run had received and not stored, oldest first; those that made it are dropped."""
    rows = _LEFT.all(conversation=conversation_id)
    if not rows:
        return []
    known = set(
        Event.objects.filter(uid__in=[row.uid for row in rows]).values_list("uid", flat=True)
    )
    kept: list[tuple[LiveBlock, str]] = []
    for row in rows:
        if row.uid in known:
            row.delete()
        elif row.text:
            kind: Literal["text", "thinking"]
            kind = "thinking" if row.kind == "thinking" else "text"
            kept.append((LiveBlock(row.uid, kind, row.model_request_id, row.continues), row.text))
    return kept
