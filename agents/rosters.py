"""Fixes, when an agent is saved, which version of which agents its roster means.

What a roster says is `harness.roster`'s; who may save is asked by `actions`.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from accounts.models import Organisation
from harness.agentconfig import AgentConfig
from harness.errors import Invalid
from harness.modelfaults import read_as
from harness.roster import SELF, TYPES, Callee, Roster
from providers.table import KINDS

from .models import Agent, AgentVersion

FIELD = "roster_agents"
NAME = 100
"""Characters of what an agent is called by."""
AUTO = "auto"


def pinned(
    config: AgentConfig, *, organisation: Organisation | None, name: str, before: AgentConfig | None
) -> AgentConfig:
    """The same with a version and a name for each agent of its roster, and the advisor's provider. `name` is
    what the agent itself is called. What `before` has already stays as it is, also where it is on offer no
    more.

    Raises Invalid for an agent or a version that work done for this organisation may not use, and for an
    advisor that no provider has.
    """
    if not config.roster.offers_something:
        return config
    kept = set(before.roster.agents) if before is not None else set()
    agents: list[Callee] = []
    for each in config.roster.agents:
        fixed = each if each in kept else _pinned(each, organisation, name)
        agents.append(fixed if each.name else _told_apart(fixed, agents))
    roster = {
        **config.roster.model_dump(),
        "agents": [each.model_dump() for each in agents],
        "advisor": _advisor(config),
    }
    try:
        return config.model_copy(update={"roster": read_as(roster, Roster)})
    except Invalid as problem:
        raise Invalid(problem.message, field=FIELD, hint=problem.hint) from None


def advisor_of(roster: Roster, provider: str) -> tuple[str, str]:
    """Provider and model of the advisor of an agent that `provider` serves."""
    first, slash, model = roster.advisor.partition("/")
    if slash and (first == AUTO or first in KINDS):
        return first, model
    if roster.advisor in KINDS:
        return roster.advisor, ""
    return provider, roster.advisor


def versions_of(callees: Sequence[Callee]) -> dict[str, AgentVersion]:
    """The versions that a roster holds, by the agent's id, as far as there are any; none of `SELF`."""
    wanted = {each.agent: each.version for each in callees if each.agent != SELF}
    if not wanted:
        return {}
    rows = AgentVersion.objects.filter(
        agent__uid__in=wanted, number__in=set(wanted.values())
    ).select_related("agent__organisation", "agent__current")
    return {row.agent.uid: row for row in rows if wanted[row.agent.uid] == row.number}


def _pinned(callee: Callee, organisation: Organisation | None, own_name: str) -> Callee:
    if callee.agent == SELF:
        return _called(callee.model_copy(update={"version": 0}), own_name)
    agent = _found(callee.agent, organisation)
    if not callee.version:
        assert agent.current is not None  # noqa: S101 - on_offer() promises it
        version = agent.current
    else:
        rows = AgentVersion.objects.filter(agent=agent, number=callee.version, draft=False)
        found = rows.first()
        if found is None:
            raise Invalid(
                _("%(agent)s has no version %(number)d.")
                % {"agent": agent.name, "number": callee.version},
                field=FIELD,
                hint=_("Leave the version out for the current one."),
            )
        version = found
    fixed = callee.model_copy(update={"agent": agent.uid, "version": version.number})
    return _called(fixed, agent.name)


def _advisor(config: AgentConfig) -> str:
    if not config.roster.advisor:
        return ""
    provider, model = advisor_of(config.roster, config.provider)
    kind = KINDS.get(provider)
    if not model and (kind is None or not kind.default_model):
        raise Invalid(
            _("The advisor needs a model."),
            field="roster_advisor",
            hint=_("Name it as provider/model."),
        )
    return f"{provider}/{model}" if model else provider


def _called(callee: Callee, usual: str) -> Callee:
    """By what it is called itself, unless every agent can call on something of that name."""
    own = f"{usual} agent" if usual.casefold() in TYPES else usual[:NAME].strip()
    return callee.model_copy(update={"name": callee.name or own})


def _told_apart(callee: Callee, others: Sequence[Callee]) -> Callee:
    """With a number behind its name where another one is called so."""
    taken = {each.name.casefold() for each in others}
    name, number = callee.name, 1
    while name.casefold() in taken:
        number += 1
        name = f"{callee.name[: NAME - 3]} {number}"
    return callee.model_copy(update={"name": name})


def _found(wanted: str, organisation: Organisation | None) -> Agent:
    """An agent on offer to all for whom this roster's agent works, by its id or, if it alone has it, its
    name."""
    here = Agent.objects.filter(private=False).on_offer().select_related("current")
    rows = here.filter(organisation=None) if organisation is None else here.usable_in(organisation)
    found = rows.filter(uid=wanted).first()
    if found is not None:
        return found
    named = list(rows.filter(name=wanted)[:2])
    if len(named) == 1:
        return named[0]
    if named:
        raise Invalid(
            _("Several agents are called “%(name)s”.") % {"name": wanted},
            field=FIELD,
            hint=_("Name it by its id."),
        )
    raise Invalid(
        _("The agent “%(name)s” is not on offer to everybody who may use this one.")
        % {"name": wanted},
        field=FIELD,
        hint=_("Name one that is, by its id or its name."),
    )
