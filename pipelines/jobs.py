"""The jobs of pipelines: doorways without logic."""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError

from jobs.engine import engine
from jobs.registry import job

from . import running
from .withstrands.process import NotReady

logger = logging.getLogger(__name__)


@job(running.LOOK)
async def look(run_id: int) -> None:
    """At a run of which a step has come to rest. A fault of ours ends it; where the database or
    Strands is away, a later look finds it."""
    try:
        ask = await engine.in_database(running.look_at, run_id)
        if ask is not None:
            told = await engine.in_tool_thread(ask)
            await engine.in_database(running.look_at, run_id, told)
    except (OperationalError, InterfaceError):
        raise
    except NotReady as problem:
        logger.warning("run %s of a pipeline waits: %s", run_id, problem)
    except Exception:
        logger.exception("run %s of a pipeline could not go on", run_id)
        await engine.in_database(running.give_up, run_id)


@job(running.END)
async def end(run_id: int) -> None:
    await engine.in_database(running.end_steps, run_id)


@job("pipelines.sweep", every="AGENTSITE_SWEEP_SECONDS")
async def sweep() -> None:
    await engine.in_database(running.look_again)
