"""The jobs of evaluations: doorways without logic."""

from __future__ import annotations

import logging

from django.db import DatabaseError

from jobs.engine import engine
from jobs.registry import job

from . import caching, stopping
from .collecting import collect, run_commands
from .running import LOOK, START, conclude, give_up, look_again, start_due

logger = logging.getLogger(__name__)

SWEEP = "evals.sweep"


@job(START)
async def start(evaluation_id: int) -> None:
    await engine.in_database(start_due, evaluation_id)


@job(LOOK)
async def look(trial_id: int) -> None:
    """At a trial that came to rest. A fault of ours ends it; where the database is away, a later look
    finds it."""
    try:
        collected = await engine.in_database(collect, trial_id)
        if collected is None:
            return
        facts = await run_commands(collected)
        evaluation = await engine.in_database(conclude, trial_id, facts)
    except DatabaseError:
        raise
    except Exception:
        logger.exception("trial %s could not be judged", trial_id)
        evaluation = await engine.in_database(give_up, trial_id)
    if evaluation is not None:
        await engine.in_database(start_due, evaluation)


@job(stopping.END)
async def end(evaluation_id: int) -> None:
    await engine.in_database(stopping.end_trials, evaluation_id)


@job(SWEEP, every="AGENTSITE_SWEEP_SECONDS")
async def sweep() -> None:
    await engine.in_database(look_again)
    await engine.in_database(stopping.look_again)
    await engine.in_database(caching.prune)
