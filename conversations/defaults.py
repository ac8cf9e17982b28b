"""What a new conversation begins with where nobody chose: the person's preference, else the first
agent and environment on offer."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from harness.errors import Invalid

from .models import Agent, Environment, Preference


def default_agent(user: User, organisation: Organisation) -> Agent:
    """Raises Invalid where no agent is on offer."""
    offered = Agent.objects.visible_to(user).usable_in(organisation).on_offer()
    offered = offered.select_related("current")
    preferred = Preference.objects.filter(user=user).values_list("default_agent_id", flat=True)
    agent = offered.filter(pk__in=[pk for pk in preferred if pk]).first() or offered.first()
    if agent is None:
        raise Invalid(
            _("There is no agent to work with."),
            field="agent",
            hint=_("A member of staff can add one in the administration."),
        )
    return agent


def default_environment(user: User, organisation: Organisation) -> Environment:
    """Raises Invalid where no environment is on offer."""
    offered = Environment.objects.visible_to(user).usable_in(organisation).on_offer()
    preferred = Preference.objects.filter(user=user).values_list(
        "default_environment_id", flat=True
    )
    environment = offered.filter(pk__in=[pk for pk in preferred if pk]).first() or offered.first()
    if environment is None:
        raise Invalid(
            _("There is no environment to work in."),
            field="environment",
            hint=_("A member of staff can add one in the administration."),
        )
    return environment
