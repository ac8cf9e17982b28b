"""What the rows of a run say to Strands' loop: which turns its orchestrator took, and what came of each call.

References stand for words: `question`, `call:3.0` (the first call of the turn at place 3), `answer:4` (what
was said at place 4). The words stand in our logs; `pipelines.orchestrating` puts them in place. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from pipelines.graph.following import RETRY, START, Done, Ends, Go
from pipelines.graph.spec import MOST_OF_A_RUN, PipelineSpec


@dataclass(slots=True)
class Turn:
    """One usable answer of the orchestrator's."""

    place: int
    calls: tuple[str, ...]
    """Of specialists, by name; none: it is the answer."""
    came: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """Of each call the place of its last step, and whether that failed for good."""


@dataclass(slots=True)
class Asked:
    """What has no answer yet: the orchestrator with all of these, or a specialist with its call."""

    name: str
    told: tuple[str, ...]


class Strange(Exception):
    """Strands asks for what it was not told of."""


class Replay:
    """Answers Strands from the rows, and notes what these do not hold."""

    def __init__(self, spec: PipelineSpec, steps: Sequence[Done]) -> None:
        self._spec = spec
        self._turns = turns_of(spec, steps)
        self._answered = 0
        self.due: Asked | None = None

    def answer(self, heard: dict[str, Any]) -> dict[str, Any]:
        if "tool" in heard:
            return self._specialist(str(heard["tool"]), str(heard.get("name", "")))
        return self._orchestrator(heard["model"])

    def _orchestrator(self, told: Any) -> dict[str, Any]:
        if self._answered == len(self._turns):
            if not isinstance(told, list) or not all(isinstance(each, str) for each in told):
                raise Strange("no list of references")
            self.due = Asked(self._spec.steps[0].name, tuple(told))
            return {"wait": 1}
        turn = self._turns[self._answered]
        self._answered += 1
        if not turn.calls:
            return {"text": f"answer:{turn.place}"}
        calls = enumerate(turn.calls)
        return {"calls": [{"id": f"{turn.place}.{n}", "name": name} for n, name in calls]}

    def _specialist(self, use: str, name: str) -> dict[str, Any]:
        turn = self._turns[self._answered - 1] if self._answered else None
        number = next(
            (n for n in range(len(turn.calls)) if use == f"{turn.place}.{n}") if turn else iter(()),
            None,
        )
        if turn is None or number is None or turn.calls[number] != name:
            raise Strange("a call that nobody made")
        came = turn.came.get(number)
        if came is None:
            self.due = Asked(name, (f"call:{use}",))
            return {"wait": 1}
        place, failed = came
        return {"result": f"answer:{place}", "failed": failed}


def turns_of(spec: PipelineSpec, steps: Sequence[Done]) -> list[Turn]:
    """Steps whose answers could not be used count where no further try follows: a specialist's as a failure
    that the orchestrator is told of."""
    turns: list[Turn] = []
    number = -1
    for place, step in enumerate(steps, 1):
        if step.name == spec.steps[0].name:
            if step.outcome is not None:
                turns.append(Turn(place, tuple(call.to for call in step.outcome.calls)))
                number = -1
            continue
        number += step.came_by != RETRY
        if step.outcome is not None:
            turns[-1].came[number] = (place, False)
        elif tries(steps[:place]) >= spec.step(step.name).tries:
            turns[-1].came[number] = (place, True)
    return turns


def ended(spec: PipelineSpec, steps: Sequence[Done]) -> Ends | None:
    """Where nothing has to be asked to know that it is over."""
    if not steps:
        return None
    last, orchestrator = steps[-1], spec.steps[0]
    if last.outcome is None and (
        last.final or (last.name == orchestrator.name and tries(steps) >= orchestrator.tries)
    ):
        return Ends(_("“%(name)s” came to no answer that can be used.") % {"name": last.name})
    if len(steps) >= MOST_OF_A_RUN:
        return Ends(_("It came to %(count)d steps, and no run has more.") % {"count": len(steps)})
    turns = turns_of(spec, steps)
    if turns and len(turns) >= spec.turns and turns[-1].calls:
        told = {"name": orchestrator.name, "count": len(turns)}
        return Ends(
            _("“%(name)s” took %(count)d turns and came to no answer; it may take no more.") % told
        )
    return None


def way_to(spec: PipelineSpec, steps: Sequence[Done], asked: Asked) -> Go:
    """With the rule that leads there (`rules_of`), or as a further try."""
    last = steps[-1] if steps else None
    if last is None:
        came_by = START
    elif (
        last.outcome is None
        and last.name == asked.name
        and tries(steps) < spec.step(last.name).tries
    ):
        came_by = RETRY
    elif asked.name == spec.steps[0].name:
        came_by = f"{last.name}.0"
    else:
        names = [step.name for step in spec.steps[1:]]
        came_by = f"{spec.steps[0].name}.{names.index(asked.name)}"
    return Go(asked.name, came_by, asked.told)


def tries(steps: Sequence[Done]) -> int:
    """How often the last step was asked since something else led to it."""
    count = 1
    for step in reversed(steps):
        if step.came_by != RETRY:
            break
        count += 1
    return count
