"""The agents that a person is shown in one organisation: her own, the organisation's, the server's."""

from __future__ import annotations

from typing import Literal

from django.db.models import Q

from accounts.models import Organisation, User

from .models import Agent
from .models.agent import AgentQuerySet

Place = Literal["own", "organisation", "server"]

SEARCH_LIMIT = 200
"""Characters of a search that are read."""


def listed_agents(
    user: User, organisation: Organisation, *, search: str = "", archived: bool = False
) -> AgentQuerySet:
    """Those in use, or those put away, whose name or description holds each word."""
    rows = Agent.objects.visible_to(user).usable_in(organisation).filter(current__isnull=False)
    rows = rows.filter(archived_at__isnull=not archived)
    for word in search.replace("\0", "")[:SEARCH_LIMIT].split():
        rows = rows.filter(Q(name__icontains=word) | Q(description__icontains=word))
    return rows.select_related("current__base__agent", "owner", "organisation")


def place_of(agent: Agent, user: User) -> Place:
    if agent.owner_id == user.pk:
        return "own"
    return "server" if agent.organisation_id is None else "organisation"
