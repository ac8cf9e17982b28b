"""Whether conversations work with an agent or an environment, for the floor that keeps both."""

from __future__ import annotations

from agents.models import Agent, Environment

from .models import Conversation


def works_with(*, agent: Agent | None = None, environment: Environment | None = None) -> bool:
    """See `agents.uses.Uses`."""
    if agent is not None:
        return Conversation.objects.filter(agent_version__agent=agent).exists()
    return Conversation.objects.filter(environment=environment).exists()
