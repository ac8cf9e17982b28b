"""Which model writes a person's briefs: the one that she chose, else the operator's for a service that her
work has a key for."""

from __future__ import annotations

from django.conf import settings

from accounts.models import Organisation, User
from agents.modelchoices import may_use
from conversations.kits import Choice, choose_provider
from harness.agentconfig import AgentConfig

from .models import BriefWish


def usual_writer(user: User, organisation: Organisation) -> AgentConfig | None:
    """The operator's; None where there is none that she could use."""
    for provider, model in settings.AGENTSITE_BRIEF_MODELS.items():
        if model and may_use(user, organisation, provider):
            return AgentConfig(provider=provider, model=model)
    return None


def writer_of(wish: BriefWish) -> AgentConfig | None:
    usual = usual_writer(wish.user, wish.organisation)
    if wish.provider:
        chosen = AgentConfig(provider=wish.provider, model=wish.model)
    elif usual is not None:
        chosen = usual
    else:
        return None
    return AgentConfig.model_validate({**chosen.model_dump(), "effort": wish.effort})


def choice_of(wish: BriefWish, config: AgentConfig) -> Choice | None:
    """With her key; None where there is none."""
    if not may_use(wish.user, wish.organisation, config.provider):
        return None
    choice = choose_provider(config, wish.user, wish.organisation)
    return choice if choice.config is not None else None
