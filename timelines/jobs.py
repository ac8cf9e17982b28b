"""The job of timelines: a doorway without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .exporting import EXPORT, send, sending_of


@job(EXPORT)
async def export(conversation_id: int, seq: int) -> None:
    sending = await engine.in_database(sending_of, conversation_id, seq)
    if sending is not None:
        await send(sending)
