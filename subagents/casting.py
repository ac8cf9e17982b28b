"""Who carries out a call: the agent, its version, and what of its configuration differs there.

Whom an agent may name is what its roster says and the types that every agent has. What is left for whoever is
called is `limits`'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.models import Agent, AgentVersion
from agents.rosters import advisor_of, versions_of
from conversations.actions.conversations import OVERRIDABLE
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, Limits, Role
from harness.errors import Invalid
from harness.roster import SELF, Callee

from .heldback import held_back_by
from .kinds import ADVISOR, KINDS, Kind, May
from .models import Subagent
from .tools import Choice

DEFAULT = "general"
ADVISOR_SHARE = 4
"""Advice takes a quarter of what is left at most."""
OF_ROSTER = "an agent of its own, with its own instructions and tools"


@dataclass(frozen=True, slots=True)
class Cast:
    agent: Agent
    version: int
    limits: Limits
    """Its agent's own."""
    steps: int
    held_back: Mapping[str, bool] = field(default_factory=dict)
    """By which switches: the conversation's above and, of an agent of the roster, its own."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    temperature: float | None = None
    share: int = 1
    """It may use at most so great a part (one in so many) of what is left."""


def kind_of(row: Subagent) -> Kind | None:
    """The type; None for an agent of the roster and for one that the call defines."""
    return None if row.inline else type_called(row.kind)


def type_called(name: str) -> Kind | None:
    return ADVISOR if name == ADVISOR.name else KINDS.get(name)


def bounds_of(row: Subagent) -> May:
    kind = kind_of(row)
    return kind.may if kind is not None else May.ALL


def files_of(given: Mapping[str, Any], kind: Kind | None) -> Subagent.Files:
    """What a call says of files; a type that changes nothing has them read only whatever it says."""
    if kind is not None and kind.may is not May.ALL:
        return Subagent.Files.READ_ONLY
    usual = kind.files if kind is not None else Subagent.Files.SHARED
    wanted = given.get("files")
    return Subagent.Files(wanted) if wanted in Subagent.Files.values else usual


def choices_of(config: AgentConfig) -> list[Choice]:
    """Whom an agent with this configuration may call on, the usual one first."""
    roster = config.roster
    described = versions_of(roster.agents)
    choices = [Choice(each.name, _purpose(described.get(each.agent))) for each in roster.agents]
    if not roster.only:
        kinds = sorted(KINDS.values(), key=lambda kind: kind.name != DEFAULT)
        choices = [*(Choice(kind.name, kind.purpose) for kind in kinds), *choices]
    if roster.advisor:
        choices.append(Choice(ADVISOR.name, ADVISOR.purpose))
    return choices


def usual_of(config: AgentConfig) -> str:
    """Who is meant where a call names nobody."""
    if not config.roster.only:
        return DEFAULT
    return next((each.name for each in config.roster.agents), ADVISOR.name)


def cast_for(row: Subagent, parent: Conversation) -> Cast:
    """Raises `Invalid` for a name that is none of those the agent may call on."""
    roster = parent.config.roster
    kind = kind_of(row)
    if row.inline and roster.inline:
        return _of_its_own(row, parent, None)
    if kind is ADVISOR and roster.advisor:
        return _advisor(row, parent)
    if kind is not None and kind is not ADVISOR and not roster.only:
        return _of_its_own(row, parent, kind)
    callee = None if row.inline else roster.callee(row.kind)
    if callee is None:
        names = ", ".join(choice.name for choice in choices_of(parent.config))
        raise Invalid(
            f"There is no agent called {row.kind[:60]} to call on.",
            field="agent",
            hint=f"Choose from: {names}." if names else "Do the work yourself.",
        )
    return cast_of(callee, parent, "subagent", wished=row.given)


def cast_of(
    callee: Callee, parent: Conversation, role: Role, *, wished: Mapping[str, Any] | None = None
) -> Cast:
    """An agent of the roster of `parent`'s: with its own instructions, tools, model and limits, as that role
    of it says. Raises `Invalid` for one that is gone."""
    if callee.agent == SELF:
        version, kept = parent.agent_version, _kept(parent)
        config = parent.config.for_role(role)
        held_back = held_back_by(parent.features)
    else:
        found = versions_of([callee]).get(callee.agent)
        if found is None:
            raise Invalid(
                f"{callee.name} is gone: the agent or that version of it was deleted.",
                field="agent",
                hint="Choose another one, or do the work yourself.",
            )
        version, kept = found, {}
        config = found.config.for_role(role)
        held_back = held_back_by(parent.features, found.config.features)
    return Cast(
        agent=version.agent,
        version=version.number,
        limits=config.limits,
        steps=_steps(wished or {}, config.limits.steps),
        held_back=held_back,
        overrides={
            **kept,
            **_model_of(config, version.config),
            "effort": config.effort,
            "thinking": config.thinking,
        },
        temperature=config.temperature,
    )


def _of_its_own(row: Subagent, parent: Conversation, kind: Kind | None) -> Cast:
    """The parent's own agent, in another role."""
    config = parent.config.for_role("subagent")
    role = parent.config.roles.get("subagent")
    effort = role.effort if role is not None and role.effort is not None else ""
    instructions = kind.instructions if kind is not None else row.inline.get("instructions", "")
    wished = row.inline.get("effort") or effort or (kind.effort if kind is not None else "")
    version = parent.agent_version
    return Cast(
        agent=version.agent,
        version=version.number,
        limits=config.limits,
        steps=_steps(row.given, kind.steps if kind is not None else config.limits.steps),
        held_back=held_back_by(parent.features),
        overrides={
            **_kept(parent),
            **_model_of(config, version.config),
            "instructions": instructions,
            "effort": wished or config.effort,
            "thinking": config.thinking,
        },
        temperature=config.temperature,
    )


def _advisor(row: Subagent, parent: Conversation) -> Cast:
    """Another model with words alone: nothing of the agent but its limits holds for it."""
    config = parent.config
    provider, model = advisor_of(config.roster, config.provider)
    version = parent.agent_version
    return Cast(
        agent=version.agent,
        version=version.number,
        limits=config.limits,
        steps=ADVISOR.steps,
        held_back=held_back_by(parent.features),
        overrides={
            **_kept(parent),
            "provider": provider,
            "model": model,
            "instructions": ADVISOR.instructions,
            "effort": ADVISOR.effort,
            "thinking": True,
        },
        share=ADVISOR_SHARE,
    )


def _purpose(version: AgentVersion | None) -> str:
    return (version.agent.description if version is not None else "") or OF_ROSTER


def _kept(parent: Conversation) -> dict[str, Any]:
    return {name: value for name, value in parent.overrides.items() if name in OVERRIDABLE}


def _model_of(config: AgentConfig, own: AgentConfig) -> dict[str, Any]:
    return {} if config.model == own.model else {"model": config.model}


def _steps(given: Mapping[str, Any], most: int) -> int:
    wished = given.get("max_steps")
    return min(wished, most) if isinstance(wished, int) else most
