"""The jobs of hooks: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import telling

SWEEP = "hooks.sweep"


@job(telling.TELL)
async def tell(conversation_id: int) -> None:
    await telling.tell(conversation_id)


@job(SWEEP, every="AGENTSITE_SWEEP_SECONDS")
async def sweep_hooks() -> None:
    """Tell what is due and nobody tells."""
    await engine.in_database(telling.sweep)
