"""Brings what we ship up to date at start-up: agents, environment, prompts, prices and skills."""

from __future__ import annotations

from django.db import transaction

from agents.seeding import seed_agents
from skills_app.seeding import seed_skills
from spending.seeding import seed_prices


def seed() -> None:
    """Idempotent; a second call with the same seeds writes nothing."""
    with transaction.atomic():
        seed_agents()
        seed_prices()
        seed_skills()
