"""Who belongs to a team, by what name, and how each of them stands now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from django.utils.translation import gettext as _

from conversations.models import Conversation, Run
from harness.errors import NotFound

from .models import Board, Team, Teammate

LEAD = "lead"
"""By this name everybody knows whoever leads; no teammate is called so."""


class Status(StrEnum):
    WORKING = "working"
    WAITING = "waiting"
    """For a person, or for a worker of its environment."""
    IDLE = "idle"
    STOPPED = "stopped"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Member:
    team: Team
    conversation: Conversation
    teammate: Teammate | None
    """None: it leads."""
    since: datetime | None = None
    """Since when it works, where that was asked for (`with_since`) and it does."""

    @property
    def name(self) -> str:
        return self.teammate.name if self.teammate else LEAD

    @property
    def status(self) -> Status:
        return status_of(self.conversation, self.teammate)


def hold_lead(team: Team) -> None:
    """Lock its conversation, before those of its teammates: who switches something on there, or takes words
    out of a teammate's log, holds it first as well. And before it its board, which whoever changes a task
    holds before it is told of that. Needs a transaction that holds the team."""
    Board.objects.select_for_update(no_key=True).filter(conversation=team.lead_id).first()
    Conversation.objects.select_for_update(no_key=True).filter(pk=team.lead_id).first()


def status_of(conversation: Conversation, teammate: Teammate | None = None) -> Status:
    if teammate is not None and teammate.dismissed_at is not None:
        return Status.DISMISSED
    if conversation.status == Conversation.Status.TERMINATED:
        return Status.DISMISSED
    if teammate is not None and teammate.stopped_at is not None:
        return Status.STOPPED
    if conversation.waits_for_person or conversation.waits_for_worker:
        return Status.WAITING
    if conversation.is_running or conversation.owes_run:
        return Status.WORKING
    return Status.IDLE


def member_of(conversation: Conversation) -> Member | None:
    """As whom its agent belongs to a team; None: to none."""
    found = Teammate.objects.select_related("team__lead__owner").filter(conversation=conversation)
    teammate = found.first()
    if teammate is not None:
        return Member(teammate.team, conversation, teammate)
    team = Team.objects.select_related("lead__owner").filter(lead=conversation).first()
    return Member(team, conversation, None) if team is not None else None


def members_of(team: Team) -> Sequence[Member]:
    """Whoever leads, then the others that were not dismissed, the longest there first."""
    lead = Conversation.objects.select_related("owner", "organisation").get(pk=team.lead_id)
    rows = team.teammates.active().select_related(
        "conversation__owner", "conversation__agent_version__agent"
    )
    return [Member(team, lead, None), *(Member(team, row.conversation, row) for row in rows)]


def with_since(members: Sequence[Member]) -> Sequence[Member]:
    """The same, each with since when it works, for pages."""
    working = [one.conversation.pk for one in members if one.status is Status.WORKING]
    if not working:
        return members
    runs = Run.objects.filter(conversation__in=working, state=Run.State.RUNNING)
    begun = dict(runs.values_list("conversation", "started_at"))
    return [replace(one, since=begun.get(one.conversation.pk)) for one in members]


def member_named(team: Team, name: str) -> Member:
    """NotFound for nobody of that name who is still there."""
    wanted = name.strip().casefold()
    for member in members_of(team):
        if member.name.casefold() == wanted:
            return member
    raise NotFound(
        _("Nobody in the team is called “%(name)s”.") % {"name": name[:100]},
        hint=_("list_teammates tells who is there."),
    )
