"""What the definition of a pipeline says: its steps, what each is asked, how it is read, where it leads.

Only the shape is judged here, field by field; whether the whole makes sense is `checking`'s. Pure.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

STRANDS = "strands"
"""The engine of pipelines whose first step, the orchestrator, asks the others as it sees fit."""
END, FAIL = "end", "fail"
"""Where a rule may lead beside steps."""
APPROVED, REFUSED = "approved", "refused"
"""The words of a person who was asked."""
MOST_STEPS = 30
MOST_BACK = 5
"""How often one rule may lead back."""
MOST_TRIES = 5
MOST_TURNS = 20
"""Of an orchestrator."""
MOST_CALLS = 5
"""Of one of its turns."""
MOST_OF_A_RUN = 300
"""Steps of one run: bounds that each rule has for itself multiply."""

_NAME = r"^[a-z][a-z0-9_]{0,39}$"
_TARGET = r"^[a-z][a-z0-9_]{0,39}$"
_FIELD = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}(\.[A-Za-z_][A-Za-z0-9_-]{0,63}){0,4}$"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Condition(_Part):
    """Holds for what a step answered last: one of `words`, or a `field` of its JSON."""

    of: str = Field(default="", max_length=40)
    """Of which step; empty: of the one whose rule it is."""
    word: tuple[str, ...] = Field(default=(), max_length=20)
    field: str = Field(default="", max_length=320)
    equals: StrictBool | StrictInt | StrictFloat | StrictStr | None = None
    at_least: float | None = Field(default=None, allow_inf_nan=False)
    below: float | None = Field(default=None, allow_inf_nan=False)


class Rule(_Part):
    to: str = Field(pattern=_TARGET)
    when: Condition | None = None
    """None: always."""
    at_most: int | None = Field(default=None, ge=1, le=MOST_BACK)
    """How often it leads there in one run; then the next rule is asked."""


class StepSpec(_Part):
    name: str = Field(pattern=_NAME)
    agent: str = Field(default="", max_length=100)
    """Name or id; empty: the pipeline's."""
    version: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Of the agent; fixed when the pipeline is saved."""
    about: str = Field(default="", max_length=500)
    """Of a specialist: what the orchestrator is told of it."""
    prompt: str = Field(default="", max_length=20_000)
    again: str = Field(default="", max_length=20_000)
    """What it is asked whenever it was asked before in this run."""
    approval: str = Field(default="", max_length=20_000)
    """What a person is asked, who decides whether it goes on; then no agent works."""
    words: tuple[str, ...] = Field(default=(), max_length=20)
    """Its answer says one of these."""
    tries: int = Field(default=1, ge=1, le=MOST_TRIES)
    """How often it is asked until its answer is one that can be read."""
    next: tuple[Rule, ...] = Field(default=(), max_length=20)
    """The first that holds says where it goes. Empty: to the step below, or to the end."""
    script: tuple[str, ...] = Field(default=(), max_length=20)
    """What the scripted model answers, time after time; the last for all further ones."""


class PipelineSpec(_Part):
    version: Literal[1] = 1
    """Of the file's form."""
    name: str = Field(min_length=1, max_length=100)
    description: str = Field(default="", max_length=500)
    agent: str = Field(default="", max_length=100)
    """Of the steps that name none."""
    engine: Literal["", "langgraph", "strands"] = ""
    """What says which step is due; empty: `following`."""
    turns: int = Field(default=10, ge=1, le=MOST_TURNS)
    """Of an orchestrator's, at most."""
    answer: str = Field(default="", max_length=40)
    """The step whose last answer is the pipeline's; empty: the last one with an agent."""
    steps: tuple[StepSpec, ...] = Field(min_length=1, max_length=MOST_STEPS)

    def step(self, name: str) -> StepSpec:
        return next(step for step in self.steps if step.name == name)

    @property
    def answering(self) -> str:
        if self.answer:
            return self.answer
        if self.engine == STRANDS:
            return self.steps[0].name
        return next((step.name for step in reversed(self.steps) if not step.approval), "")


def rules_of(spec: PipelineSpec, name: str) -> tuple[Rule, ...]:
    """The step's own, or those it has without any."""
    place = next(place for place, step in enumerate(spec.steps) if step.name == name)
    step = spec.steps[place]
    if spec.engine == STRANDS:
        if place:
            return (Rule(to=spec.steps[0].name),)
        return (*(Rule(to=each.name) for each in spec.steps[1:]), Rule(to=END))
    if step.next:
        return step.next
    below = spec.steps[place + 1].name if place + 1 < len(spec.steps) else END
    if step.approval:
        return (Rule(when=Condition(word=(APPROVED,)), to=below), Rule(to=FAIL))
    return (Rule(to=below),)


def words_of(step: StepSpec) -> tuple[str, ...]:
    return (APPROVED, REFUSED) if step.approval else step.words


def fields_of(spec: PipelineSpec, name: str) -> tuple[str, ...]:
    """The fields that its answer must have, because rules look at them."""
    found: dict[str, None] = {}
    for step in spec.steps:
        for rule in step.next:
            condition = rule.when
            if condition is not None and condition.field and (condition.of or step.name) == name:
                found[condition.field] = None
    return tuple(found)


def is_number_wanted(spec: PipelineSpec, name: str, field: str) -> bool:
    """Whether a rule compares it as one."""
    return any(
        rule.when is not None
        and rule.when.field == field
        and (rule.when.of or step.name) == name
        and (rule.when.at_least is not None or rule.when.below is not None)
        for step in spec.steps
        for rule in step.next
    )
