"""The job of the mails about what waits: a doorway without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import mailing

MAIL_WAITING = "notices.mail_waiting"


@job(MAIL_WAITING, every="AGENTSITE_MAIL_SECONDS")
async def mail_people_who_are_waited_for() -> None:
    # A mail server may take its time.
    await engine.in_tool_thread(mailing.mail_waiting)
