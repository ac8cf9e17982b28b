"""The jobs of comparisons: doorways without logic."""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError

from jobs.engine import engine
from jobs.registry import job

from . import running

logger = logging.getLogger(__name__)


@job(running.LOOK)
async def look(comparison_id: int) -> None:
    """At one of which something has come to rest. A fault of ours ends it; where the database is away, a
    later look finds it."""
    try:
        await engine.in_database(running.go_on, comparison_id)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        logger.exception("comparison %s could not go on", comparison_id)
        await engine.in_database(running.give_up, comparison_id)


@job(running.END)
async def end(comparison_id: int) -> None:
    await engine.in_database(running.end_entries, comparison_id)


@job("comparisons.sweep", every="AGENTSITE_SWEEP_SECONDS")
async def sweep() -> None:
    await engine.in_database(running.look_again)
