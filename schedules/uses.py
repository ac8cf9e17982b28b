"""Whether a standing order uses an agent or an environment, in any version."""

from __future__ import annotations

from agents.models import Agent, Environment

from .models import OrderRun, StandingOrder


def is_used(*, agent: Agent | None = None, environment: Environment | None = None) -> bool:
    if agent is not None:
        return (
            StandingOrder.objects.filter(agent_version__agent=agent).exists()
            or OrderRun.objects.filter(agent_version__agent=agent).exists()
        )
    return StandingOrder.objects.filter(environment=environment).exists()
