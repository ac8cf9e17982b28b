"""The jobs of titles: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions import naming
from .asking import write_title
from .projection import WRITE


@job(WRITE)
async def name_conversation(conversation_id: int) -> None:
    await write_title(conversation_id)


@job("titles.sweep", every="AGENTSITE_SWEEP_SECONDS")
async def settle_lost_requests() -> None:
    await engine.in_database(naming.settle_lost)
