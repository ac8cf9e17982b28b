"""Rules with the level they were made at, and the terms on which a call is asked for.

The values between whoever keeps rules (settings, tables, agents) and `harness.policy`, which weighs
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from harness.agentconfig import AskOptions, ToolRule
from harness.content import Frozen
from harness.errors import Invalid
from harness.modelfaults import read_as
from reading.foreignjson import read_json

LevelName = Literal["tool", "deployment", "organisation", "agent", "conversation", "run"]
Risk = Literal["low", "medium", "high"]
Condition = Literal["two_people", "reviewers_only", "requester_may_not_decide"]
"""What an answer may have to meet beyond coming from somebody who may decide."""

CONDITIONS: dict[Condition, str] = {
    "two_people": "two different people",
    "reviewers_only": "a reviewer",
    "requester_may_not_decide": "somebody else than the person the agent works for",
}
"""Each with the words for what it wants."""


class Level(IntEnum):
    """How far a rule reaches; the smaller, the broader."""

    TOOL = 0
    """The tool's own word."""
    DEPLOYMENT = 1
    ORGANISATION = 2
    AGENT = 3
    CONVERSATION = 4
    RUN = 5
    """One turn: from the message that began it to the rest that ends it."""

    @property
    def word(self) -> LevelName:
        return _NAMES[self]


_NAMES: dict[Level, LevelName] = {
    Level.TOOL: "tool",
    Level.DEPLOYMENT: "deployment",
    Level.ORGANISATION: "organisation",
    Level.AGENT: "agent",
    Level.CONVERSATION: "conversation",
    Level.RUN: "run",
}


def level_named(name: str) -> Level:
    """Raises `ValueError` for a name that is none."""
    for level, word in _NAMES.items():
        if word == name:
            return level
    raise ValueError(f"there is no level “{name}”")


_RULES = TypeAdapter(tuple[ToolRule, ...])


@cache
def rules_from(text: str) -> tuple[ToolRule, ...]:
    """The rules of a JSON list. Raises `ValueError` naming the place and the fault."""
    try:
        return read_as(read_json(text or "[]"), _RULES)
    except Invalid as problem:
        raise ValueError(problem.faults[0].words()) from problem


@dataclass(frozen=True, slots=True)
class Grant:
    """What a rule saved through an approval may settle: no more than its maker could have decided."""

    level: Level
    """The broadest level whose asking the approval answered."""
    turn: str = ""
    """The turn it holds for (`Turn.uid`); empty: for all."""
    two_people: bool = False
    reviewers_only: bool = False
    requester_may_not_decide: bool = False
    """Which of these conditions were met when it was given."""
    tainted: bool = False
    """It was given with untrusted content in sight."""
    host: str = ""
    """The machine that such calls went to: another server that takes the name is not meant."""


@dataclass(frozen=True, slots=True)
class LevelledRule:
    rule: ToolRule
    level: Level
    uid: str = ""
    """Of a rule kept in a table; empty for those of settings and agents."""
    grant: Grant | None = None
    """Set when it was saved through an approval; only such a rule settles what asks."""


class AskTerms(Frozen):
    """On what terms a call waits for people; stored with the call."""

    level: LevelName = "agent"
    """Of the broadest rule that asks."""
    rule: str = ""
    """Its uid, if it is kept in a table."""
    effect: str = ""
    destructive: bool = False
    tainted: bool = False
    risk: Risk = "medium"
    two_people: bool = False
    reviewers_only: bool = False
    requester_may_not_decide: bool = False
    service_accounts: tuple[str, ...] = ()
    """Those that every rule names which asks for people."""
    ask_first: str = ""
    """Whom the broadest rule names that names anybody."""
    expires_seconds: int | None = None
    may_be_settled: bool = True
    """Whether an answer may also hold for later calls."""
    turn: str = ""
    """The turn it belongs to (`Turn.uid`)."""
    host: str = ""
    """The machine that the call goes to, of a tool that has one (`Tool.host`)."""

    @property
    def options(self) -> AskOptions:
        return AskOptions(
            two_people=self.two_people,
            reviewers_only=self.reviewers_only,
            requester_may_not_decide=self.requester_may_not_decide,
            service_accounts=self.service_accounts,
            ask_first=self.ask_first,
            expires_seconds=self.expires_seconds,
        )


def conditions_of(held: AskOptions | AskTerms | Grant) -> frozenset[Condition]:
    """Those a rule or a question has, or those that were met when a permission was given."""
    return frozenset(name for name in CONDITIONS if getattr(held, name))
