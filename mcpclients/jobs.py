"""The job of clients: a doorway without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions.clients import forget_unused


@job("mcpclients.sweep", every="AGENTSITE_SWEEP_SECONDS")
async def sweep_clients() -> None:
    await engine.in_database(forget_unused)
