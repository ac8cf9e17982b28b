"""The jobs of learning: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions import analysing
from .asking import read_on
from .projection import READ


@job(READ)
async def read_conversation(conversation_id: int) -> None:
    await read_on(conversation_id)


@job("learning.sweep", every="AGENTSITE_SWEEP_SECONDS")
async def settle_lost_readings() -> None:
    await engine.in_database(analysing.settle_lost)
