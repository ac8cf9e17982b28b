"""Notes that programs keep on agents and environments: short names and texts.

They mean nothing to this server. Whoever may change the thing may change its notes.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.staff import has_staff_permission, require_staff
from agents.actions.agents import require_editor
from agents.models import Agent, Environment
from harness.errors import NotFound
from wire.metadata import check_metadata


def note_agent(*, actor: User, agent: Agent, metadata: Mapping[str, str]) -> None:
    """In the place of all earlier notes. Raises as `actions.agents.change_agent`."""
    if not has_staff_permission(actor, "agents.change_agent"):
        if not Agent.objects.visible_to(actor).filter(pk=agent.pk).exists():
            raise NotFound(_("There is no such agent."))
        require_editor(actor, agent, "agents.change_agent")
    Agent.objects.filter(pk=agent.pk).update(metadata=check_metadata(metadata))


def note_environment(*, actor: User, environment: Environment, metadata: Mapping[str, str]) -> None:
    require_staff(actor, "agents.change_environment")
    Environment.objects.filter(pk=environment.pk).update(metadata=check_metadata(metadata))
