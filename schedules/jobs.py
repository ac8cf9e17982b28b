"""The jobs of standing orders: doorways without logic."""

from __future__ import annotations

import time

from django.conf import settings

from jobs.engine import engine
from jobs.registry import job

from . import ending, mailbox, mailintake, queueing, results, running
from .projection import END

TICK = "schedules.tick"


@job(TICK, every="AGENTSITE_SCHEDULE_SECONDS")
async def begin_what_is_due() -> None:
    """What is due, what was to begin and did not, what ended and nobody settled."""
    while await engine.in_tool_thread(running.take_due) >= running.AT_A_TIME:
        pass
    await engine.in_tool_thread(queueing.begin_waiting)
    await engine.in_tool_thread(running.begin_queued_alone, rest=_rest)
    await engine.in_tool_thread(ending.settle_ends)
    await engine.in_tool_thread(results.send_waiting)


def _rest(seconds: float) -> bool:
    """Whether the process is about to end, which is not to wait for a thousand more."""
    time.sleep(seconds)
    return engine.draining


@job("schedules.prune", every="AGENTSITE_SWEEP_SECONDS")
async def forget_old_runs() -> None:
    days = settings.AGENTSITE_SCHEDULE_RUN_DAYS
    await engine.in_database(ending.prune, days=days)
    await engine.in_database(mailintake.prune, days=days)


@job(running.BEGIN)
async def begin_run(run_id: int) -> None:
    await engine.in_tool_thread(running.begin, run_id)


@job(END)
async def settle_end(run_id: int) -> None:
    await engine.in_tool_thread(ending.settle, run_id)


@job(results.SEND)
async def send_results() -> None:
    await engine.in_tool_thread(results.send_waiting)


@job("schedules.mailbox", every="AGENTSITE_IMAP_SECONDS")
async def look_for_mails() -> None:
    """What is new in the operator's mailbox, if there is one."""
    while await engine.in_tool_thread(mailbox.look) >= mailbox.AT_A_TIME:
        pass
