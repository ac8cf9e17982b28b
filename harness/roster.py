"""Whom an agent may call on, as data: other agents by their version, agents that a call defines, an advisor.

Which agent has an id, and that a version is there, is asked when an agent is saved (`agents.rosters`); what a
call of one comes to is `subagents`'.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

MOST_CALLEES = 20
SELF = "self"
"""Stands for the agent that has the roster, as the version that has it."""
ADVISOR = "advisor"
"""By this name a conversation calls on the advisor."""
TYPES = frozenset({"general", "code", "explore", "plan", "research", ADVISOR})
"""Names of what every agent may call on; no agent of a roster is called so."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Callee(_Strict):
    agent: str = Field(min_length=1, max_length=100)
    """Its id, or `SELF`."""
    version: int = Field(default=0, ge=0)
    """Fixed when the agent that has the roster is saved; 0: not yet, and for `SELF`."""
    name: str = Field(default="", max_length=100)
    """What it is called by; empty, until it is saved: what it is called itself."""

    @field_validator("name")
    @classmethod
    def _is_no_type(cls, name: str) -> str:
        if name.casefold() in TYPES:
            raise ValueError(f"every agent can call on “{name}”; give this one another name")
        return " ".join(name.split())


class Roster(_Strict):
    agents: tuple[Callee, ...] = Field(default=(), max_length=MOST_CALLEES)
    only: bool = False
    """The types that every agent has (`TYPES`) cannot be called."""
    inline: bool = False
    """A call may define an agent for itself: instructions, and fewer tools than the agent has."""
    advisor: str = Field(default="", max_length=160)
    """The model that gives advice, `provider/model` or one of the agent's own provider; empty: none does."""
    form: Literal["", "coordinator", "multiagent_20261001"] = ""
    """In which of its two forms a program wrote it at `/v1`, to be read back alike; of no weight."""

    @field_validator("agents")
    @classmethod
    def _differ(cls, agents: tuple[Callee, ...]) -> tuple[Callee, ...]:
        seen: set[str] = set()
        for each in agents:
            if each.agent in seen:
                raise ValueError(f"“{each.agent}” is named twice; name it once")
            seen.add(each.agent)
        names: set[str] = set()
        for each in agents:
            if each.name.casefold() in names:
                raise ValueError(f"two are called “{each.name}”; give one of them another name")
            names |= {each.name.casefold()} if each.name else set()
        return agents

    @property
    def offers_something(self) -> bool:
        return bool(self.agents or self.inline or self.advisor)

    def callee(self, name: str) -> Callee | None:
        return next((each for each in self.agents if each.name == name), None)
