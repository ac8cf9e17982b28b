"""Teammates join, are stopped by people, go on, and are dismissed."""

from __future__ import annotations

import re

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.children import begin_child
from conversations.actions.conversations import find_agent
from conversations.actions.messages import stop
from conversations.actions.own import own_conversation
from conversations.models import Conversation
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound
from harness.roster import SELF, Callee
from subagents.casting import Cast, cast_of
from teams_app.actions.mail import checked, deliver_held_back, held_team
from teams_app.actions.tasks import Changes, change_task
from teams_app.members import LEAD
from teams_app.models import Task, Team, Teammate
from teams_app.models.team import NAME_LIMIT, ROLE_LIMIT
from teams_app.owners import NOBODY
from teams_app.waking import attend_soon
from wire.naming import one_line

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def spawn_teammate(
    *,
    actor: User,
    lead: Conversation,
    name: str,
    role: str,
    text: str,
    agent: str = "",
    key: str | None = None,
) -> Teammate:
    """A teammate of the agent of `lead`, in a child conversation that begins with `text`. `agent` is the name
    of one of its roster or on offer; empty: the lead's own. What holds the lead back holds its teammates
    back, and what another agent holds itself back by. The same key makes one.

    Raises NotFound for a conversation that is not the actor's, Forbidden where it may have no team, Invalid
    naming the field, Conflict for a name that is taken, LimitReached.
    """
    name = _name(name)
    role = _role(role)
    text = checked(text)
    with transaction.atomic():
        team = _team(actor, lead)
        if key is not None and (known := team.teammates.filter(key=key).first()):
            return known
        if team.teammates.filter(name=name).exists():
            raise Conflict(
                _("The team has or had somebody called “%(name)s”.") % {"name": name},
                hint=_("Take another name."),
            )
        if team.teammates.active().count() >= settings.AGENTSITE_TEAMMATES:
            raise LimitReached(
                _("The team has %(limit)d teammates already.")
                % {"limit": settings.AGENTSITE_TEAMMATES},
                hint=_("Ask one whom you need no more to end its work (shutdown_request)."),
            )
        held = team.lead
        cast = _cast(actor, held, agent)
        child = begin_child(
            actor=actor,
            parent=held,
            agent=cast.agent,
            version=cast.version,
            overrides=cast.overrides,
            as_child={"temperature": cast.temperature},
            environment=held.environment,
            text=f"[Team] You are {name}. {role}\n{text}".strip(),
            features={"teams": True, **cast.held_back},
            title=f"{name}: {role}"[:200] if role else name,
        )
        made = Teammate.objects.create(team=team, name=name, role=role, conversation=child, key=key)
        attend_soon(team)
    return made


def stop_teammate(*, actor: User, teammate: Teammate) -> None:
    """A person has it do nothing until she lets it go on: its turn ends, and what is written to it waits.

    Raises NotFound for somebody else's, Conflict for one that was dismissed.
    """
    with transaction.atomic():
        held = _held(actor, teammate)
        if held.stopped_at is None:
            held.stopped_at = timezone.now()
            held.save(update_fields=["stopped_at"])
            stop(actor=actor, conversation=held.conversation, holds_queue=True)
            attend_soon(held.team)


def stop_team(*, actor: User, team: Team) -> int:
    """Have all its teammates do nothing until a person lets each go on; how many worked or could. Whoever
    leads goes on. Raises NotFound for somebody else's."""
    with transaction.atomic():
        held = held_team(actor, team)
        rows = list(held.teammates.active().filter(stopped_at=None).select_related("team"))
        for teammate in rows:
            stop_teammate(actor=actor, teammate=teammate)
    return len(rows)


def resume_teammate(*, actor: User, teammate: Teammate) -> None:
    """It hears what was written to it meanwhile. Raises as `stop_teammate`."""
    with transaction.atomic():
        held = _held(actor, teammate)
        if held.stopped_at is not None:
            held.stopped_at = None
            held.save(update_fields=["stopped_at"])
            deliver_held_back([held.conversation_id])
            attend_soon(held.team)


def dismiss_teammate(*, actor: User, teammate: Teammate, interrupts: bool = True) -> None:
    """It belongs to the team no more: its open tasks are nobody's again, and its conversation stays. Twice
    changes nothing. Raises NotFound for somebody else's."""
    with transaction.atomic():
        team = held_team(actor, teammate.team)
        held = team.teammates.active().select_related("conversation").filter(pk=teammate.pk).first()
        if held is None:
            return
        held.dismissed_at = timezone.now()
        held.save(update_fields=["dismissed_at"])
        if interrupts:
            stop(actor=actor, conversation=held.conversation, holds_queue=True)
        for task in Task.objects.open().filter(owner_conversation=held.conversation_id):
            change_task(actor=actor, task=task, changes=Changes(owner=NOBODY))
        attend_soon(team)


def _team(actor: User, lead: Conversation) -> Team:
    """The team that the conversation leads, held, with the conversation as it is now."""
    if not Conversation.objects.owned_by(actor).contains(lead):
        raise NotFound(_("There is no such conversation."))
    if lead.parent_id is not None:
        raise Forbidden(
            _("Only the agent of a conversation that a person began leads a team."),
            hint=_("Do the work yourself, or put it on the task board."),
        )
    Team.objects.get_or_create(lead=lead)
    team = held_team(actor, Team.objects.get(lead=lead))
    held = own_conversation(actor, lead)
    if not held.features.teams:
        raise Forbidden(
            _("This conversation is not to work as a team."),
            hint=_("Its owner can switch “Work as a team” on."),
        )
    team.lead = held
    return team


def _held(actor: User, teammate: Teammate) -> Teammate:
    team = held_team(actor, teammate.team)
    held = team.teammates.select_related("conversation", "team").filter(pk=teammate.pk).first()
    if held is None:
        raise NotFound(_("There is no such teammate."))
    if held.dismissed_at is not None:
        raise Conflict(_("%(name)s was dismissed.") % {"name": held.name})
    return held


def _cast(actor: User, lead: Conversation, name: str) -> Cast:
    """Who works, as its agent's role of a teammate says: one of the lead's roster by its name there, else
    one on offer, where the roster leaves that free; empty: the lead's own agent."""
    name = name.strip()
    roster = lead.config.roster
    if not name:
        return cast_of(Callee(agent=SELF), lead, "teammate")
    callee = roster.callee(name)
    if callee is not None:
        return cast_of(callee, lead, "teammate")
    if roster.only:
        names = ", ".join(each.name for each in roster.agents)
        raise Invalid(
            _("This agent cannot work with “%(name)s”.") % {"name": name[:100]},
            field="agent",
            hint=_("Choose from: %(names)s") % {"names": names} if names else "",
        )
    agent = find_agent(actor=actor, organisation=lead.organisation, wanted=name)
    assert agent.current is not None  # noqa: S101 - what is on offer has one
    found = Callee(agent=agent.uid, version=agent.current.number)
    return cast_of(found, lead, "teammate")


def _name(name: str) -> str:
    wanted = one_line(name).casefold()
    if not _NAME.fullmatch(wanted) or wanted in {LEAD, "me", "nobody", "all"}:
        raise Invalid(
            _("A teammate’s name has 1 to %(limit)d small letters, digits, “_” and “-”.")
            % {"limit": NAME_LIMIT},
            field="name",
            hint=_("“lead”, “me”, “nobody” and “all” are taken."),
        )
    return wanted


def _role(role: str) -> str:
    line = one_line(role)
    if len(line) > ROLE_LIMIT:
        raise Invalid(
            _("The role is longer than %(limit)d characters.") % {"limit": ROLE_LIMIT},
            field="role",
            hint=_("Say the rest in the prompt."),
        )
    return line
