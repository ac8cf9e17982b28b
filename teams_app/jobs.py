"""The jobs of teams: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import attending
from .waking import ATTEND

SWEEP = "teams_app.sweep"


@job(ATTEND)
async def attend(team_id: int) -> None:
    await engine.in_database(attending.attend, team_id)


@job(SWEEP, every="AGENTSITE_TEAM_SECONDS")
async def sweep() -> None:
    await engine.in_database(attending.sweep)
