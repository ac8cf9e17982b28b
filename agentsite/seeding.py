"""Brings what we ship up to date at start-up: agents, environment, prompts and prices."""

from __future__ import annotations

from django.db import transaction

from agents.seeding import seed_agents
from spending.seeding import seed_prices


def seed() -> None:
    """Idempotent; a second call with the same seeds writes nothing."""
    with transaction.atomic():
        seed_agents()
        seed_prices()
