"""The jobs of briefs: doorways without logic."""

from __future__ import annotations

from django.conf import settings

from jobs.engine import engine
from jobs.registry import job

from . import sending


@job("brief.tick", every="AGENTSITE_BRIEF_SECONDS")
async def make_what_is_due() -> None:
    """What is due, and what was to be mailed and was not."""
    while await engine.in_tool_thread(sending.make_due) >= sending.AT_A_TIME:
        pass
    await engine.in_tool_thread(sending.mail_made)


@job(sending.MAIL)
async def mail_briefs() -> None:
    await engine.in_tool_thread(sending.mail_made)


@job("brief.prune", every="AGENTSITE_SWEEP_SECONDS")
async def forget_old_briefs() -> None:
    await engine.in_database(sending.prune, days=settings.AGENTSITE_BRIEF_DAYS)
