"""The jobs of skills: doorways without logic."""

from __future__ import annotations

import asyncio
import logging

from harness.errors import AgentError
from jobs.engine import engine
from jobs.registry import job

from . import packages, watching
from .actions.trialruns import JOB, end_trial_run, fail_trial_run, plan_of
from .installing import install
from .trialrun.carrying import carry_out, clear_away

logger = logging.getLogger(__name__)


@job("skills_app.watch", every="AGENTSITE_SKILLS_DIR_SECONDS")
async def watch() -> None:
    await engine.in_database(watching.look_for_edits)


@job("skills_app.sweep", every="AGENTSITE_SWEEP_SECONDS")
async def sweep() -> None:
    await engine.in_tool_thread(clear_away)
    await engine.in_database(packages.look_after)


@job(JOB)
async def trial_run(run_id: int) -> None:
    try:
        plan = await engine.in_database(plan_of, run_id)
        report = await carry_out(plan) if plan is not None else None
    except AgentError as problem:
        await engine.in_database(fail_trial_run, run_id, problem)
    except Exception:
        logger.exception("the trial run %s broke off", run_id)
        await engine.in_database(fail_trial_run, run_id, None)
    else:
        if report is not None:
            await engine.in_database(end_trial_run, run_id, report)


@job(packages.JOB)
async def install_packages(row_id: int) -> None:
    order = await engine.in_database(packages.begin, row_id)
    if order is None:
        return
    try:
        laid = await install(order.needs, packages.root(), lock=order.lock)
    except asyncio.CancelledError:
        # The process is being stopped: the next one need not wait until this counts as lost.
        await asyncio.shield(engine.in_database(packages.give_back, row_id))
        raise
    except AgentError as problem:
        await engine.in_database(packages.fail, row_id, problem)
    except Exception:
        logger.exception("the packages %s were not installed", row_id)
        await engine.in_database(packages.fail, row_id, None)
    else:
        await engine.in_database(packages.end, row_id, laid)
