"""The jobs of briefs: doorways without logic."""

from __future__ import annotations

from django.conf import settings

from jobs.engine import engine
from jobs.registry import job

from . import sending
from .asking import write_text, write_wanted


@job("brief.tick", every="AGENTSITE_BRIEF_SECONDS")
async def make_what_is_due() -> None:
    """What is due, and what was to be written or mailed and was not."""
    while await engine.in_tool_thread(sending.make_due) >= sending.AT_A_TIME:
        pass
    await write_wanted()
    await engine.in_tool_thread(sending.mail_made)


@job(sending.MAIL)
async def mail_briefs() -> None:
    await engine.in_tool_thread(sending.mail_made)


@job(sending.WRITE)
async def write_brief(brief_id: int) -> None:
    await write_text(brief_id)


@job("brief.prune", every="AGENTSITE_SWEEP_SECONDS")
async def forget_old_briefs() -> None:
    await engine.in_database(sending.prune, days=settings.AGENTSITE_BRIEF_DAYS)
