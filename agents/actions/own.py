"""Members make, change and duplicate agents of their own, which may do no more than an agent that they
are offered.

A version of one is its owner's alone; offering it to the organisation is `actions.reviews`' part.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_member
from accounts.persons import hold_place
from agents.actions.agents import (
    CHANGE,
    add_version,
    check_agent,
    lock_agent,
    record_agent,
)
from agents.modelchoices import require_usable
from agents.models import Agent, AgentVersion
from agents.narrowing import Wishes, narrowed, wishes_in
from audit import record as audit
from harness.agentconfig import AgentConfig
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound

MOST_OWN = 100
"""Agents in use that a member may have in one organisation."""


def make_own_agent(
    *,
    actor: User,
    organisation: Organisation,
    base: Agent,
    name: str,
    description: str,
    wishes: Wishes,
) -> Agent:
    """An agent of the actor's own in the organisation, which may do no more than `base`.

    Raises NotFound for a stranger, Invalid, naming the field, for a base that is not on offer, for wishes
    that would allow more than it and for what `check_agent` refuses, and LimitReached.
    """
    require_member(actor, organisation)
    with transaction.atomic():
        bound = next_bound(_offered_version(actor, organisation, base))
        config = _judged(actor, organisation, bound, wishes, before=bound)
        return _make(actor, organisation, bound, name, description, config)


def duplicate_agent(
    *, actor: User, organisation: Organisation, agent: Agent, name: str = ""
) -> Agent:
    """A copy of the actor's own of any agent she is offered or owns, which may do no more than what that
    one is bounded by now. Raises as `make_own_agent`, and NotFound for an agent she may not see."""
    require_member(actor, organisation)
    with transaction.atomic():
        seen = Agent.objects.visible_to(actor).usable_in(organisation).filter(pk=agent.pk)
        source = seen.select_related("current").first()
        version = None
        if source is not None:
            version = source.newest if source.owner_id == actor.pk else source.current
        if source is None or version is None:
            raise NotFound(_("There is no such agent."))
        bound = next_bound(version)
        wishes = wishes_in(version.config, bound.config) if bound == version else wishes_of(version)
        config = narrowed(bound.config, wishes)
        copied = name or _("%(name)s (copy)") % {"name": source.name[:80]}
        return _make(actor, organisation, bound, copied, source.description, config)


def change_own_agent(
    *,
    actor: User,
    agent: Agent,
    name: str,
    description: str,
    wishes: Wishes,
    expected_version: int | None = None,
    released: bool = True,
) -> Agent:
    """Another configuration is a new version, which nobody but its owner can use. What new conversations
    begin with becomes it too while the agent is private and the change is `released`; else it is to be
    tried. Nothing is written where nothing differs.

    Raises as `make_own_agent`, NotFound for an agent the actor may not see, Forbidden for one that is not
    her own, Conflict for a version that is not the newest any more, and Invalid for another name of an
    agent that others know by the one it has.
    """
    with transaction.atomic():
        held = lock_own_agent(actor, agent)
        newest = _newest(held)
        _require_newest(newest, expected_version)
        bound = next_bound(newest)
        config = _judged(actor, held.organisation, bound, wishes, before=newest)
        name, description = check_agent(name=name, description=description, config=config)
        _write(held, newest, bound, name, description, config, actor, released=released)
    return held


def restore_own_version(
    *, actor: User, agent: Agent, number: int, expected_version: int | None = None
) -> Agent:
    """Make of an earlier version the newest one, within what bounds the agent now. Raises as
    `change_own_agent`."""
    with transaction.atomic():
        held = lock_own_agent(actor, agent)
        newest = _newest(held)
        _require_newest(newest, expected_version)
        version = AgentVersion.objects.filter(agent=held, number=number).first()
        if version is None:
            raise NotFound(
                _("%(agent)s has no version %(number)d.") % {"agent": held.name, "number": number}
            )
        bound = next_bound(newest)
        config = narrowed(bound.config, wishes_of(version))
        _write(held, newest, bound, held.name, held.description, config, actor, released=True)
    return held


def next_bound(version: AgentVersion) -> AgentVersion:
    """What the next version of a member's own agent that follows this one may do no more than: its base
    as that one is now, and where that is not offered any more, this one. One that nobody bounds bounds
    what is made of it."""
    bound = version.base or version
    if bound.agent_id == version.agent_id:
        return bound
    if bound.agent.archived_at is not None:
        return version
    return bound.agent.current or bound


def wishes_of(version: AgentVersion) -> Wishes:
    """What its owner chose when it was made."""
    return wishes_in(version.config, (version.base or version).config)


def lock_own_agent(actor: User, agent: Agent) -> Agent:
    """The row as it is now, held until the transaction ends. Raises NotFound for one that the actor may
    not see, and Forbidden for one that is not her own."""
    seen = Agent.objects.visible_to(actor).filter(pk=agent.pk).first()
    if seen is None:
        raise NotFound(_("There is no such agent."))
    if seen.owner_id != actor.pk:
        raise Forbidden(
            _("%(agent)s is not your own agent.") % {"agent": seen.name},
            hint=_("Duplicate it: the copy is yours to change."),
        )
    return lock_agent(actor, seen, CHANGE)


def _offered_version(actor: User, organisation: Organisation, base: Agent) -> AgentVersion:
    seen = Agent.objects.visible_to(actor).usable_in(organisation).on_offer()
    held = seen.select_related("current__base").filter(pk=base.pk).first()
    if held is None or held.current is None:
        raise Invalid(
            _("The agent it is to begin from is not on offer."),
            field="base",
            hint=_("Choose another one."),
        )
    return held.current


def _judged(
    actor: User,
    organisation: Organisation | None,
    bound: AgentVersion,
    wishes: Wishes,
    *,
    before: AgentVersion,
) -> AgentConfig:
    config = narrowed(bound.config, wishes)
    kept = {bound.config.provider, before.config.provider}
    if organisation is not None and config.provider not in kept:
        require_usable(actor, organisation, config.provider)
    return config


def _make(
    actor: User,
    organisation: Organisation,
    bound: AgentVersion,
    name: str,
    description: str,
    config: AgentConfig,
) -> Agent:
    name, description = check_agent(name=name, description=description, config=config)
    hers = hold_place(actor, organisation)
    own = Agent.objects.filter(owner__in=hers, organisation=organisation, archived_at=None)
    if own.count() >= MOST_OWN:
        raise LimitReached(
            _("You have %(most)d agents here, which is the most one may have.")
            % {"most": MOST_OWN},
            hint=_("Archive one that you do not need."),
        )
    agent = Agent.objects.create(
        organisation=organisation,
        owner=actor,
        private=True,
        name=name,
        description=description,
        created_by=actor,
    )
    agent.current = add_version(agent, config, actor, base=bound, draft=True)
    agent.save(update_fields=["current"])
    record_agent(audit.Action.AGENT_MADE, agent, actor)
    return agent


def _write(
    agent: Agent,
    newest: AgentVersion,
    bound: AgentVersion,
    name: str,
    description: str,
    config: AgentConfig,
    actor: User,
    *,
    released: bool,
) -> None:
    changed = [
        field
        for field, value in (("name", name), ("description", description))
        if getattr(agent, field) != value
    ]
    if changed and not agent.private:
        raise Invalid(
            _("Others know this agent by the name and description it has."),
            field=changed[0],
            hint=_("Leave them, or duplicate the agent under another name."),
        )
    agent.name, agent.description = name, description
    version = newest
    if newest.config != config:
        version = add_version(agent, config, actor, base=bound, draft=True)
        changed += [
            field
            for field in AgentConfig.model_fields
            if getattr(newest.config, field) != getattr(config, field)
        ]
    moved = released and agent.private and agent.current_id != version.pk
    if moved:
        agent.current = version
    if changed or moved:
        agent.save(update_fields=["name", "description", "current", "updated_at"])
        record_agent(
            audit.Action.AGENT_CHANGED, agent, actor, version=version.number, changed=changed
        )


def _newest(agent: Agent) -> AgentVersion:
    newest = agent.newest
    if newest is None:
        raise NotFound(_("There is no such agent."))
    return newest


def _require_newest(newest: AgentVersion, expected: int | None) -> None:
    if expected is not None and expected != newest.number:
        raise Conflict(
            _("Somebody saved version %(number)d of this agent meanwhile; you began with %(own)d.")
            % {"number": newest.number, "own": expected},
            hint=_("Open the agent again and make your change there."),
        )
