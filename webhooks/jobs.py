"""The jobs of webhooks: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import courier, deliveries
from .mails import SWITCHED_OFF, mail_switched_off
from .outbox import DELIVER

SWEEP = "webhooks.sweep"


@job(DELIVER)
async def deliver_webhook(delivery_id: int, endpoint_id: int) -> None:
    await courier.deliver(delivery_id, endpoint_id)


@job(SWEEP, every="AGENTSITE_SWEEP_SECONDS")
async def sweep_webhooks() -> None:
    """Send what is due and nobody sends, and let go of old deliveries."""
    await engine.in_database(deliveries.sweep)
    await engine.in_database(deliveries.prune)


@job(SWITCHED_OFF)
async def mail_that_an_endpoint_was_switched_off(endpoint_id: int) -> None:
    await engine.in_tool_thread(mail_switched_off, endpoint_id)
