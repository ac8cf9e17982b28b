"""The jobs of workers: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import items

END_LOST = "workers.end_lost"


@job(END_LOST, every="AGENTSITE_SWEEP_SECONDS")
async def end_lost_work() -> None:
    """Queue anew what was lost with the workers that had it."""
    await engine.in_database(items.end_lapsed)
