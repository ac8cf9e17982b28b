"""`multiagent` of agents and sessions: whom an agent may call on, in the public API's two forms.

What it comes to is a `Roster`; which agents and versions are meant is fixed when the agent is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import Field, TypeAdapter

from agents.models import AgentVersion
from agents.rosters import advisor_of, versions_of
from harness.agentconfig import AgentConfig
from harness.errors import Invalid
from harness.modelfaults import read_as
from harness.roster import MOST_CALLEES, SELF, Callee, Roster

from . import modelnames
from .door import Body, Shape

COORDINATOR, NEWER = "coordinator", "multiagent_20261001"
FIELD = "multiagent"

AgentId = Annotated[str, Field(min_length=1, max_length=100)]
ModelName = Annotated[str, Field(min_length=1, max_length=140)]
Switch = Literal["enabled", "disabled"]


class PredefinedBody(Body):
    type: Literal["agent"]
    id: AgentId
    version: int | None = Field(default=None, ge=1)


class SelfBody(Body):
    type: Literal["self"]


class AdvisorBody(Body):
    type: Literal["advisor"]
    model: ModelName


Predefined = AgentId | Annotated[PredefinedBody | SelfBody, Field(discriminator="type")]
Entry = AgentId | Annotated[PredefinedBody | SelfBody | AdvisorBody, Field(discriminator="type")]


class CoordinatorBody(Body):
    type: Literal["coordinator"]
    agents: tuple[Entry, ...] = Field(min_length=1, max_length=MOST_CALLEES + 1)


class SwitchBody(Body):
    type: Switch


class SubagentsBody(Body):
    type: Switch
    inline_agents: SwitchBody | None = None
    predefined_agents: tuple[Predefined, ...] | None = Field(default=None, max_length=MOST_CALLEES)


class WorkflowsBody(Body):
    type: Switch
    inline_agents: SwitchBody | None = None
    predefined_agents: tuple[Predefined, ...] | None = None


class AdvisorSwitchBody(Body):
    type: Switch
    model: ModelName | None = None


class NewerBody(Body):
    type: Literal["multiagent_20261001"]
    subagents: SubagentsBody | None = None
    workflows: WorkflowsBody | None = None
    advisor: AdvisorSwitchBody | None = None


MultiagentBody = Annotated[CoordinatorBody | NewerBody, Field(discriminator="type")]
_BODY: TypeAdapter[MultiagentBody] = TypeAdapter(MultiagentBody)


class CoordinatorShape(Shape):
    type: Literal["coordinator"] = "coordinator"
    agents: list[dict[str, Any]]


class Disabled(Shape):
    type: Literal["disabled"] = "disabled"


class InlineShape(Shape):
    type: Switch


class SubagentsShape(Shape):
    type: Literal["enabled"] = "enabled"
    inline_agents: InlineShape
    predefined_agents: list[dict[str, Any]]


class AdvisorShape(Shape):
    type: Literal["enabled"] = "enabled"
    model: str


class NewerShape(Shape):
    type: Literal["multiagent_20261001"] = "multiagent_20261001"
    subagents: SubagentsShape | Disabled
    workflows: Disabled = Disabled()
    advisor: AdvisorShape | Disabled


MultiagentShape = CoordinatorShape | NewerShape


def changes_of(
    body: MultiagentBody | None,
    before: AgentConfig | None,
    own: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """Fields of a configuration; none where `body` is what was read of `before`, which is the version `own`.
    With a roster an agent works as a team in new sessions."""
    if before is not None and own is not None and body == _as_read(before, own):
        return {}
    held = before.roster if before is not None else Roster()
    features = before.features if before is not None else AgentConfig().features
    if body is None:
        teams = features.teams and not held.offers_something
        return {"roster": Roster(), "features": features.model_copy(update={"teams": teams})}
    there = _Members(held, own)
    given = (
        _coordinator(body, there)
        if isinstance(body, CoordinatorBody)
        else _newer(body, held, there)
    )
    try:
        roster = read_as({**given, "only": True, "form": body.type}, Roster)
    except Invalid as problem:
        raise Invalid(problem.message, field=FIELD, hint=problem.hint) from None
    return {"roster": roster, "features": features.model_copy(update={"teams": True})}


def _as_read(config: AgentConfig, own: tuple[str, int]) -> MultiagentBody | None:
    shown = of_agent(config, own=own)
    return _BODY.validate_python(shown.wire()) if shown is not None else None


def _coordinator(body: CoordinatorBody, there: _Members) -> dict[str, Any]:
    advisors = [entry.model for entry in body.agents if isinstance(entry, AdvisorBody)]
    if len(advisors) > 1:
        raise Invalid(
            _("An agent has one advisor at most."),
            field=f"{FIELD}.agents",
            hint=_("Leave one out."),
        )
    called = [entry for entry in body.agents if not isinstance(entry, AdvisorBody)]
    return {
        "agents": there.callees(called),
        "inline": False,
        "advisor": _advisor(advisors[0]) if advisors else "",
    }


def _newer(body: NewerBody, held: Roster, there: _Members) -> dict[str, Any]:
    """Merged level by level into what the agent has in the same form: what is left out stays, null is the
    default. Workflows, which are on by default elsewhere, are off."""
    before = held if held.form == NEWER else Roster(inline=True)
    if body.workflows is not None and body.workflows.type == "enabled":
        raise Invalid(
            _("Workflows are not run here."),
            field=f"{FIELD}.workflows",
            hint=_("Disable them; subagents and an advisor there are."),
        )
    agents: list[dict[str, Any]] = [each.model_dump() for each in before.agents]
    inline, advisor = before.inline, before.advisor
    if "subagents" in body.model_fields_set:
        given = body.subagents or SubagentsBody(type="enabled")
        was_on = bool(before.agents or before.inline) and body.subagents is not None
        if given.type == "disabled":
            agents, inline = [], False
        else:
            if "predefined_agents" in given.model_fields_set or not was_on:
                agents = there.callees(given.predefined_agents or ())
            if "inline_agents" in given.model_fields_set or not was_on:
                inline = given.inline_agents is None or given.inline_agents.type == "enabled"
            if not agents and not inline:
                raise Invalid(
                    _("Without inline agents there is at least one predefined one."),
                    field=f"{FIELD}.subagents.predefined_agents",
                    hint=_("Name one, or disable subagents."),
                )
    if "advisor" in body.model_fields_set:
        wanted = body.advisor or AdvisorSwitchBody(type="disabled")
        if wanted.type == "enabled" and wanted.model is None:
            raise Invalid(
                _("The advisor needs a model."), field=f"{FIELD}.advisor.model", hint=_("Name one.")
            )
        advisor = _advisor(wanted.model or "") if wanted.type == "enabled" else ""
    return {"agents": agents, "inline": inline, "advisor": advisor}


class _Members:
    """Whom an agent has before it is changed."""

    def __init__(self, held: Roster, own: tuple[str, int] | None) -> None:
        """`own`: what stands on the wire for the agent itself."""
        self._known = {
            own if each.agent == SELF else (each.agent, each.version): each for each in held.agents
        }
        self._itself = next((each for each in held.agents if each.agent == SELF), None)

    def callees(self, entries: Sequence[str | PredefinedBody | SelfBody]) -> list[dict[str, Any]]:
        """Who is there already stays, with what this wire cannot say of it."""
        return [self._callee(entry).model_dump() for entry in entries]

    def _callee(self, entry: str | PredefinedBody | SelfBody) -> Callee:
        match entry:
            case str():
                return Callee(agent=entry)
            case SelfBody():
                return self._itself or Callee(agent=SELF)
            case PredefinedBody():
                version = entry.version or 0
                there = self._known.get((entry.id, version))
                return there or Callee(agent=entry.id, version=version)


def _advisor(name: str) -> str:
    provider, model = modelnames.from_wire(name)
    return f"{provider}/{model}" if model else provider


def advisor_model(config: AgentConfig) -> str:
    """The advisor's model as this wire names models."""
    return modelnames.to_wire(*advisor_of(config.roster, config.provider))


Show = Callable[[AgentVersion], dict[str, Any]]
"""An agent's version as an entry of a roster."""


def of_agent(config: AgentConfig, *, own: tuple[str, int]) -> MultiagentShape | None:
    """Its agents by id and version; `own` are those of the agent itself."""

    def reference(callee: Callee) -> dict[str, Any]:
        uid, version = own if callee.agent == SELF else (callee.agent, callee.version)
        return {"type": "agent", "id": uid, "version": version}

    return _shape(config, [reference(each) for each in config.roster.agents])


def of_session(config: AgentConfig, *, own: dict[str, Any], show: Show) -> MultiagentShape | None:
    """Its agents as they are in these versions; one that was deleted is left out."""
    found = versions_of(config.roster.agents)
    whole = [
        {"type": "agent", **(own if each.agent == SELF else show(found[each.agent]))}
        for each in config.roster.agents
        if each.agent == SELF or each.agent in found
    ]
    return _shape(config, whole)


def _shape(config: AgentConfig, agents: list[dict[str, Any]]) -> MultiagentShape | None:
    roster = config.roster
    if not roster.offers_something:
        return None
    if roster.form == COORDINATOR:
        advisor = [{"type": "advisor", "model": advisor_model(config)}] if roster.advisor else []
        return CoordinatorShape(agents=[*agents, *advisor])
    subagents: SubagentsShape | Disabled = Disabled()
    if roster.agents or roster.inline:
        inline = InlineShape(type="enabled" if roster.inline else "disabled")
        subagents = SubagentsShape(inline_agents=inline, predefined_agents=agents)
    return NewerShape(
        subagents=subagents,
        advisor=AdvisorShape(model=advisor_model(config)) if roster.advisor else Disabled(),
    )
