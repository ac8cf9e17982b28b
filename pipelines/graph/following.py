"""Where a run of a pipeline stands, as a pure function of what its steps came to, in their order.

Whoever has the rows of a run knows from here what is due; nothing else decides it, so a run goes on after
any break where it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from .spec import (
    END,
    FAIL,
    MOST_CALLS,
    MOST_OF_A_RUN,
    STRANDS,
    Condition,
    PipelineSpec,
    rules_of,
)

START, RETRY, RESUMED = "start", "retry", "resumed"
"""How a step came to run where no rule led there."""


@dataclass(frozen=True, slots=True)
class Call:
    """What an orchestrator wants of a specialist."""

    to: str
    task: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an answer was read as."""

    word: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    """Of an orchestrator's; none: it is the answer."""


@dataclass(frozen=True, slots=True)
class Done:
    """One step that has ended."""

    name: str
    came_by: str
    outcome: Outcome | None
    """None: its answer could not be used."""
    final: bool = False
    """Of one without outcome: no further try would mend it."""


@dataclass(frozen=True, slots=True)
class Go:
    name: str
    came_by: str
    told: tuple[str, ...] = ()
    """Of a model-driven pipeline: what it is told of (`orchestrating`)."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The run is over. `words`: why it did not come to a good end; empty: it did."""

    words: str = ""


def following(
    spec: PipelineSpec, steps: Sequence[Done], holds: Sequence[bool] | None = None
) -> Go | Ends:
    """What is due once all of these have ended. `holds`: what `rules_that_hold` says, for who has no
    outcomes."""
    due = _following(spec, steps, holds)
    if isinstance(due, Go) and len(steps) >= MOST_OF_A_RUN:
        return Ends(_("It came to %(count)d steps, and no run has more.") % {"count": len(steps)})
    return due


def _following(
    spec: PipelineSpec, steps: Sequence[Done], holds: Sequence[bool] | None
) -> Go | Ends:
    if not steps:
        return Go(spec.steps[0].name, START)
    last = steps[-1]
    if last.outcome is None:
        if not last.final and _tries(steps) < spec.step(last.name).tries:
            return Go(last.name, RETRY)
        return Ends(_("“%(name)s” came to no answer that can be used.") % {"name": last.name})
    holds = rules_that_hold(spec, steps) if holds is None else holds
    for number, rule in enumerate(rules_of(spec, last.name)):
        way = f"{last.name}.{number}"
        if not holds[number]:
            continue
        if rule.at_most is not None and _taken(way, steps) >= rule.at_most:
            continue
        if rule.to == END:
            return Ends()
        if rule.to == FAIL:
            return Ends(
                _("What “%(name)s” answered ends it: it did not pass.") % {"name": last.name}
            )
        return Go(rule.to, way)
    return Ends(_("No rule of “%(name)s” says where it goes on.") % {"name": last.name})


def rules_that_hold(spec: PipelineSpec, steps: Sequence[Done]) -> list[bool]:
    """Of the last of these steps, by what was answered; how often one was followed is not looked at."""
    if not steps:
        return []
    name = steps[-1].name
    return [rule.when is None or _holds(rule.when, name, steps) for rule in rules_of(spec, name)]


def most_steps(spec: PipelineSpec) -> int:
    """No run has more, whatever is answered."""
    if spec.engine == STRANDS:
        tries = max(step.tries for step in spec.steps)
        return min(MOST_OF_A_RUN, spec.turns * (1 + MOST_CALLS) * tries)
    back = sum(rule.at_most or 0 for step in spec.steps for rule in step.next)
    return min(MOST_OF_A_RUN, (back + 1) * sum(step.tries for step in spec.steps))


def _tries(steps: Sequence[Done]) -> int:
    """How often the last step was asked since something else led to it."""
    tries = 1
    for step in reversed(steps):
        if step.came_by != RETRY:
            break
        tries += 1
    return tries


def _taken(way: str, steps: Sequence[Done]) -> int:
    return sum(step.came_by == way for step in steps)


def _holds(condition: Condition, name: str, steps: Sequence[Done]) -> bool:
    wanted = condition.of or name
    outcome = next((each.outcome for each in reversed(steps) if each.name == wanted), None)
    if outcome is None:
        return False
    if condition.word:
        return outcome.word in condition.word
    value: Any = outcome.fields.get(condition.field)
    if condition.equals is not None and not _same(value, condition.equals):
        return False
    if condition.at_least is not None and not (_is_number(value) and value >= condition.at_least):
        return False
    return condition.below is None or (_is_number(value) and value < condition.below)


def _same(value: Any, wanted: Any) -> bool:
    """True is no 1."""
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
