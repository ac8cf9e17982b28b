"""The jobs of standing orders: doorways without logic."""

from __future__ import annotations

from django.conf import settings

from jobs.engine import engine
from jobs.registry import job

from . import ending, queueing, running
from .projection import END

TICK = "schedules.tick"


@job(TICK, every="AGENTSITE_SCHEDULE_SECONDS")
async def begin_what_is_due() -> None:
    """What is due, what was to begin and did not, what ended and nobody settled."""
    while await engine.in_tool_thread(running.take_due) >= running.AT_A_TIME:
        pass
    await engine.in_tool_thread(queueing.begin_waiting)
    await engine.in_tool_thread(running.begin_queued)
    await engine.in_tool_thread(ending.settle_ends)


@job("schedules.prune", every="AGENTSITE_SWEEP_SECONDS")
async def forget_old_runs() -> None:
    await engine.in_database(ending.prune, days=settings.AGENTSITE_SCHEDULE_RUN_DAYS)


@job(running.BEGIN)
async def begin_run(run_id: int) -> None:
    await engine.in_tool_thread(running.begin, run_id)


@job(END)
async def settle_end(run_id: int) -> None:
    await engine.in_tool_thread(ending.settle, run_id)
