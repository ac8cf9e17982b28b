"""The jobs of spending: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions.budgets import resume_stopped
from .stops import RESUME


@job(RESUME, every="AGENTSITE_SWEEP_SECONDS")
async def resume_at_budgets() -> None:
    """Have conversations go on whose budget was raised or has room again."""
    await engine.in_database(resume_stopped)
