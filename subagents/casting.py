"""Who carries out a call: the agent, its version, and what of its configuration differs there.

What is left for it is `limits`', and whom an agent may name its roster's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.models import Agent
from conversations.actions.conversations import OVERRIDABLE
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, Limits
from harness.errors import Invalid

from .kinds import KINDS, Kind, May
from .models import Subagent

DEFAULT = "general"


@dataclass(frozen=True, slots=True)
class Cast:
    agent: Agent
    version: int
    limits: Limits
    """Its agent's own."""
    steps: int
    overrides: Mapping[str, Any] = field(default_factory=dict)
    temperature: float | None = None


def kind_of(row: Subagent) -> Kind | None:
    """The type; None for an agent of the roster and for one that the call defines."""
    return None if row.inline else KINDS.get(row.kind)


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


def cast_for(row: Subagent, parent: Conversation) -> Cast:
    """Raises `Invalid` for a name that is none of those the agent may call on."""
    kind = kind_of(row)
    if kind is None and not row.inline:
        raise Invalid(
            f"There is no agent called {row.kind[:60]} to call on.",
            field="agent",
            hint=f"Choose from: {', '.join(KINDS)}.",
        )
    return _of_its_own(row, parent, kind)


def _of_its_own(row: Subagent, parent: Conversation, kind: Kind | None) -> Cast:
    """The parent's own agent, in another role."""
    config = parent.config.for_role("subagent")
    role = parent.config.roles.get("subagent")
    effort = role.effort if role is not None and role.effort is not None else ""
    kept = {name: value for name, value in parent.overrides.items() if name in OVERRIDABLE}
    instructions = kind.instructions if kind is not None else row.inline.get("instructions", "")
    wished = row.inline.get("effort") or effort or (kind.effort if kind is not None else "")
    version = parent.agent_version
    return Cast(
        agent=version.agent,
        version=version.number,
        limits=config.limits,
        steps=_steps(row, kind.steps if kind is not None else config.limits.steps),
        overrides={
            **kept,
            **_model_of(config, version.config),
            "instructions": instructions,
            "effort": wished or config.effort,
            "thinking": config.thinking,
        },
        temperature=config.temperature,
    )


def _model_of(config: AgentConfig, own: AgentConfig) -> dict[str, Any]:
    return {} if config.model == own.model else {"model": config.model}


def _steps(row: Subagent, most: int) -> int:
    wished = row.given.get("max_steps")
    return min(wished, most) if isinstance(wished, int) else most
