"""The jobs of mails, webhooks and pushes: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import announcing, courier, mailing, pushing

MAIL_WAITING = "notices.mail_waiting"


@job(MAIL_WAITING, every="AGENTSITE_MAIL_SECONDS")
async def mail_people_who_are_waited_for() -> None:
    # A mail server may take its time.
    await engine.in_tool_thread(mailing.mail_waiting)


@job("notices.announce_waiting", every="AGENTSITE_MAIL_SECONDS")
async def announce_to_people_who_are_waited_for() -> None:
    await engine.in_tool_thread(announcing.announce_waiting)


@job("notices.push_waiting", every="AGENTSITE_PUSH_SECONDS")
async def push_to_people_who_are_waited_for() -> None:
    """What is due, and what was to be sent and was not."""
    await engine.in_tool_thread(pushing.plan_pushes)
    await courier.send_due()


@job(pushing.SEND)
async def send_pushes() -> None:
    await courier.send_due()
