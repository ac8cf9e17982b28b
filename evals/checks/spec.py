"""What a case is, as data: what is said, where it begins, and the checks that what comes of it must pass.

One model for rows, files and doors, so that all refuse the same things with the same words. How a check is
judged is `checks.judging`'s, what a run is known by `checks.facts`'.
"""

from __future__ import annotations

import base64
import binascii
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from harness.content import Frozen
from harness.events import load
from harness.schemas import require_sound
from reading.linear import NotLinear, linear

NAME = r"[a-z0-9]+(?:[-_.][a-z0-9]+)*"
MOST_CHECKS = 50
MOST_FILES = 50
MOST_RECORDED = 2_000
"""Events of a recorded beginning."""
SOURCE = 300
"""Characters of what brought strangers' words in."""
TEXT = 100_000
"""Characters of one text of a case."""

ShortText = Annotated[str, Field(max_length=2_000)]
Phrase = Annotated[str, Field(min_length=1, max_length=2_000)]


def _expression(text: str) -> str:
    try:
        linear(text)
    except NotLinear:
        raise ValueError(
            "this is no regular expression that can be matched in linear time; RE2 knows no look-around"
            " and no back-references"
        ) from None
    return text


class _Check(Frozen):
    name: str = Field(default="", max_length=100)
    """What people call it; empty: it is called by what it asks."""


class Wanted(Frozen):
    """What a text must hold."""

    all: tuple[Phrase, ...] = Field(default=(), max_length=50)
    any: tuple[Phrase, ...] = Field(default=(), max_length=50)
    none: tuple[Phrase, ...] = Field(default=(), max_length=50)
    regex: tuple[Phrase, ...] = Field(default=(), max_length=20)
    """Each is found somewhere in it."""
    ignore_case: bool = True
    """Of phrases; an expression says `(?i)` itself."""

    @field_validator("regex")
    @classmethod
    def _are_expressions(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_expression, given))

    @property
    def asks_nothing(self) -> bool:
        return not (self.all or self.any or self.none or self.regex)


class TextCheck(Wanted, _Check):
    type: Literal["text"] = "text"
    of: Literal["answer", "all"] = "answer"
    """The last answer, or everything the agent said."""

    @model_validator(mode="after")
    def _asks_something(self) -> TextCheck:
        if self.asks_nothing:
            raise ValueError("a check of a text names phrases under all, any, none or regex")
        return self


class SchemaCheck(_Check):
    """The answer is JSON, alone or in its first code block, and fits the schema."""

    type: Literal["json_schema"] = "json_schema"
    schema_: dict[str, Any] = Field(alias="schema")

    model_config = {**Frozen.model_config, "populate_by_name": True}

    @field_validator("schema_")
    @classmethod
    def _is_sound(cls, schema: dict[str, Any]) -> dict[str, Any]:
        require_sound(schema)
        return schema


class CallCheck(_Check):
    """How often the agent called a tool, by name or glob, with such arguments."""

    type: Literal["call"] = "call"
    tool: str = Field(min_length=1, max_length=128)
    arguments: dict[str, Any] = {}
    """Equal to what the call says there; objects may hold more."""
    matching: dict[str, Phrase] = {}
    """Expressions found in the text of an argument, by its name."""
    at_least: int = Field(default=1, ge=0, le=10_000)
    at_most: int | None = Field(default=None, ge=0, le=10_000)
    outcome: Literal["any", "ok", "error", "asked", "denied"] = "any"

    @field_validator("matching")
    @classmethod
    def _are_expressions(cls, given: dict[str, str]) -> dict[str, str]:
        return {name: _expression(text) for name, text in given.items()}

    @model_validator(mode="after")
    def _is_possible(self) -> CallCheck:
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError("at_most is less than at_least, which is 1 unless it is given")
        return self


class FileCheck(_Check):
    type: Literal["file"] = "file"
    path: str = Field(min_length=1, max_length=500)
    exists: bool = True
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    text: Wanted = Wanted()


class CommandCheck(_Check):
    """A command, or a program given to `python3`, in the conversation's sandbox when the agent is done."""

    type: Literal["command"] = "command"
    run: str = Field(min_length=1, max_length=20_000)
    exit_code: int = Field(default=0, ge=0, le=255)
    output: Wanted = Wanted()
    seconds: int = Field(default=60, ge=1, le=600)


class CostCheck(_Check):
    type: Literal["cost"] = "cost"
    at_most: Decimal = Field(ge=0, le=10_000, max_digits=14, decimal_places=8)
    """US dollars, of what the models of the run would cost without a cache."""


class StepsCheck(_Check):
    type: Literal["steps"] = "steps"
    at_most: int = Field(ge=1, le=1_000)
    """Model requests."""


class TimeCheck(_Check):
    type: Literal["time"] = "time"
    at_most: float = Field(gt=0, le=86_400)
    """Seconds of work."""


class StopCheck(_Check):
    """How the run came to rest."""

    type: Literal["stop"] = "stop"
    reason: Literal[
        "end_turn", "requires_action", "retries_exhausted", "budget_reached", "refusal"
    ] = "end_turn"


class JudgeCheck(_Check):
    """A model reads the conversation's question and answer and gives points by the rubric."""

    type: Literal["judge"] = "judge"
    rubric: str = Field(min_length=1, max_length=20_000)
    scale: int = Field(default=5, ge=2, le=100)
    """The most points; the fewest are 1."""
    at_least: float = Field(default=4, ge=1, le=100)
    """Of the mean over the judges."""

    @model_validator(mode="after")
    def _is_possible(self) -> JudgeCheck:
        if self.at_least > self.scale:
            raise ValueError("at_least is more than the scale’s most points")
        return self


class PreferenceCheck(_Check):
    """A model reads the answer and another one, in both orders, and says which is better."""

    type: Literal["preference"] = "preference"
    over: str = Field(min_length=1, max_length=TEXT)
    """The other answer."""
    rubric: str = Field(default="", max_length=20_000)
    ties_pass: bool = True


Check = Annotated[
    TextCheck
    | SchemaCheck
    | CallCheck
    | FileCheck
    | CommandCheck
    | CostCheck
    | StepsCheck
    | TimeCheck
    | StopCheck
    | JudgeCheck
    | PreferenceCheck,
    Field(discriminator="type"),
]


class ScriptedCall(Frozen):
    tool: str = Field(min_length=1, max_length=128)
    input: dict[str, Any] = {}


class ScriptedReply(Frozen):
    """One reply of the scripted model: what it says, and what it calls."""

    say: str = Field(default="", max_length=TEXT)
    calls: tuple[ScriptedCall, ...] = Field(default=(), max_length=20)
    if_told: str = Field(default="", max_length=2_000)
    """It stands for a model that heeds this: passed over where the instructions do not hold it."""
    unless_told: str = Field(default="", max_length=2_000)
    """It stands for a model that was not told this: passed over where the instructions hold it."""


class Script(Frozen):
    """What the scripted model answers, in order, where a suite is run without a model."""

    replies: tuple[ScriptedReply, ...] = Field(default=(), max_length=200)
    judge: tuple[str, ...] = Field(default=(), max_length=50)
    """What it answers as a judge, in the order of the checks; one for all that follow."""


class CaseFile(Frozen):
    text: str | None = Field(default=None, max_length=1_000_000)
    base64: str | None = Field(default=None, max_length=1_400_000)

    @model_validator(mode="after")
    def _is_one(self) -> CaseFile:
        if (self.text is None) == (self.base64 is None):
            raise ValueError("a file is given as text or as base64, as one of both")
        if self.base64 is not None:
            try:
                base64.b64decode(self.base64, validate=True)
            except (binascii.Error, ValueError):
                raise ValueError("this is no base64") from None
        return self

    @property
    def content(self) -> bytes:
        if self.base64 is not None:
            return base64.b64decode(self.base64)
        return (self.text or "").encode()


class Recorded(Frozen):
    """One event of the log that a case begins with."""

    uid: str = Field(max_length=40)
    at: float
    event: dict[str, Any]

    @field_validator("event")
    @classmethod
    def _is_an_event(cls, event: dict[str, Any]) -> dict[str, Any]:
        try:
            load(event)
        except ValidationError:
            raise ValueError("this is no event as logs hold them") from None
        return event


class CaseSpec(Frozen):
    name: str = Field(min_length=1, max_length=100, pattern=rf"^{NAME}$")
    note: str = Field(default="", max_length=2_000)
    """Why it is there, for whoever reads it."""
    input: tuple[Annotated[str, Field(min_length=1, max_length=TEXT)], ...] = Field(
        min_length=1, max_length=20
    )
    """What is said, one message after the answer to the one before."""
    told_date: date | None = None
    """What the agent takes for the day; without it each day is another case to a cache."""
    files: dict[Annotated[str, Field(min_length=1, max_length=500)], CaseFile] = Field(
        default={}, max_length=MOST_FILES
    )
    """By their paths in the workspace."""
    beginning: tuple[Recorded, ...] = Field(default=(), max_length=MOST_RECORDED)
    """What was recorded of a conversation, which the input goes on with."""
    untrusted_by: str = Field(default="", max_length=SOURCE)
    """What strangers' words the first message of the input holds or goes by, in words; empty: none."""
    script: Script = Script()
    checks: tuple[Check, ...] = Field(min_length=1, max_length=MOST_CHECKS)

    @field_validator("input", mode="before")
    @classmethod
    def _one_is_a_list(cls, given: Any) -> Any:
        return [given] if isinstance(given, str) else given


class SuiteSpec(Frozen):
    """A suite as a file. Version 1."""

    version: Literal[1] = 1
    name: str = Field(min_length=1, max_length=100)
    description: str = Field(default="", max_length=2_000)
    cases: tuple[CaseSpec, ...] = Field(default=(), max_length=2_000)

    @field_validator("cases")
    @classmethod
    def _names_differ(cls, cases: tuple[CaseSpec, ...]) -> tuple[CaseSpec, ...]:
        seen: set[str] = set()
        for case in cases:
            if case.name in seen:
                raise ValueError(f"two cases are called “{case.name}”; rename one of them")
            seen.add(case.name)
        return cases
