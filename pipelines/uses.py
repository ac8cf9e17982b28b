"""Which agents pipelines are pinned to: those are archived, not deleted."""

from __future__ import annotations

from agents.models import Agent, Environment

from .models import Pin


def is_used(*, agent: Agent | None = None, environment: Environment | None = None) -> bool:
    """Environments are those of conversations, which say so themselves."""
    return agent is not None and Pin.objects.filter(agent_version__agent=agent).exists()
