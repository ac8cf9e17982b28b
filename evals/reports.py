"""What evaluations came to: by case, in all, one against another, over time. Reads rows, decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from django.db.models import Q

from agents.models import Agent, Environment
from agents.versiondiff import Line, lines_between

from .checks.judging import APART
from .checks.statistics import Interval, mean, pass_at, pass_hat, wilson
from .models import Evaluation, Grade, Suite, Trial

State = Trial.State
TREND = 50
"""Evaluations that a trend shows."""
FINE = 0.5
"""Of the scale: from here on a person finds that a try did well."""
WHY = 3
"""Different reasons that a case lists."""


@dataclass(frozen=True, slots=True)
class CaseLine:
    """What came of the tries of one case."""

    name: str
    digest: str
    tries: int
    """That were judged."""
    passed: int
    broken: int
    open: int
    disagreed: bool
    """Judges differ, or a person finds something else than they do."""
    why: tuple[str, ...]
    """Which checks did not pass, and why not."""
    answer: str
    """Of the first try that did not pass, else of the first."""
    repetition: int
    """Of that try."""
    grades: tuple[Grade, ...]
    """What people say of it."""
    people: tuple[int, int]
    """How many tries people gave points to, and of how many of these they find what was judged."""
    conversation_uid: str
    cost: Decimal | None
    seconds: float

    @property
    def flaky(self) -> bool:
        return 0 < self.passed < self.tries

    @property
    def green(self) -> bool:
        return self.tries > 0 and self.passed == self.tries and not (self.broken or self.open)

    @property
    def share(self) -> float:
        return self.passed / self.tries if self.tries else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    cases: int
    trials: int
    passed: int
    failed: int
    broken: int
    open: int
    share: float
    """Of the judged tries."""
    interval: Interval
    """95 %, by Wilson."""
    k: int
    pass_at_k: float
    """How likely one of `k` tries of a case passes, over all cases."""
    pass_hat_k: float
    """How likely all of them do."""
    flaky: tuple[str, ...]
    graded: int
    """Tries that people gave points to."""
    agreed: int
    """Of these, where they find what was judged."""
    cost: Decimal | None
    saved: Decimal
    model_calls: int
    cached_calls: int
    seconds: float
    """That runs worked, all added up."""

    @property
    def hit_rate(self) -> float:
        asked = self.model_calls + self.cached_calls
        return self.cached_calls / asked if asked else 0.0

    @property
    def percent(self) -> int:
        return int(100 * self.share)


def case_lines(evaluation: Evaluation) -> list[CaseLine]:
    """One for each case, in the order of the suite."""
    tried = Trial.objects.filter(evaluation=evaluation).order_by("id")
    rows = tried.select_related("conversation").prefetch_related("grades__by")
    trials: dict[str, list[Trial]] = {}
    for trial in rows.defer("stored_spec"):
        trials.setdefault(trial.name, []).append(trial)
    return [_line(name, tries) for name, tries in trials.items()]


def _line(name: str, trials: Sequence[Trial]) -> CaseLine:
    judged = [trial for trial in trials if trial.state in {State.PASSED, State.FAILED}]
    worst = next((trial for trial in trials if trial.state == State.FAILED), trials[0])
    why: list[str] = []
    for trial in trials:
        words = [f"{each['name']}: {each['why']}" for each in trial.outcomes if not each["passed"]]
        why += [said for said in (*words, trial.problem) if said and said not in why]
    costs = [trial.cost for trial in judged]
    graded = [trial for trial in judged if trial.grades.all()]
    agreed = sum(not _people_differ(trial) for trial in graded)
    return CaseLine(
        name=name,
        digest=trials[0].digest,
        tries=len(judged),
        passed=sum(trial.state == State.PASSED for trial in trials),
        broken=sum(trial.state == State.BROKEN for trial in trials),
        open=sum(trial.state not in Trial.ENDED for trial in trials),
        disagreed=agreed < len(graded)
        or any(each["disagreed"] for trial in trials for each in trial.outcomes),
        why=tuple(why[:WHY]),
        answer=worst.answer,
        repetition=worst.repetition,
        grades=tuple(worst.grades.all()),
        people=(len(graded), agreed),
        conversation_uid=worst.conversation.uid if worst.conversation else "",
        cost=_sum(costs),
        seconds=round(mean([trial.seconds for trial in judged]), 2),
    )


def _people_differ(trial: Trial) -> bool:
    """From what was judged: the judges' points where there are some, else whether it passed."""
    shares = [each.share for each in trial.grades.all()]
    judged = [each["points"] for each in trial.outcomes if each["points"] is not None]
    if judged:
        middle = mean(judged)
        return any(abs(share - middle) > APART for share in shares)
    return any((share >= FINE) != (trial.state == State.PASSED) for share in shares)


def summary(evaluation: Evaluation, lines: Sequence[CaseLine] | None = None) -> Summary:
    lines = case_lines(evaluation) if lines is None else lines
    rows = list(
        Trial.objects.filter(evaluation=evaluation).values_list(
            "state", "cost", "saved", "model_calls", "cached_calls", "seconds"
        )
    )
    states = [row[0] for row in rows]
    passed, failed = states.count(State.PASSED), states.count(State.FAILED)
    ended = [row for row in rows if row[0] in Trial.ENDED]
    k = min((line.tries for line in lines if line.tries), default=1)
    judged = [line for line in lines if line.tries]
    return Summary(
        cases=len(lines),
        trials=len(rows),
        passed=passed,
        failed=failed,
        broken=states.count(State.BROKEN),
        open=len(rows) - len(ended),
        share=passed / (passed + failed) if passed + failed else 0.0,
        interval=wilson(passed, passed + failed),
        k=k,
        pass_at_k=mean([pass_at(k, line.passed, line.tries) for line in judged]),
        pass_hat_k=mean([pass_hat(k, line.passed, line.tries) for line in judged]),
        flaky=tuple(line.name for line in lines if line.flaky),
        graded=sum(line.people[0] for line in lines),
        agreed=sum(line.people[1] for line in lines),
        cost=_sum([row[1] for row in ended if row[0] != State.BROKEN or row[1] is not None]),
        saved=sum((row[2] for row in rows), Decimal(0)),
        model_calls=sum(row[3] for row in rows),
        cached_calls=sum(row[4] for row in rows),
        seconds=round(sum(row[5] for row in rows), 2),
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """One case in two evaluations."""

    name: str
    before: CaseLine | None
    after: CaseLine | None
    change: Literal["regressed", "improved", "same", "new", "gone", "not_tried"]
    case_changed: bool
    """It asks something else by now, so that a change says little of the agent."""
    lines: tuple[Line, ...] = ()
    """The difference of the answers."""


def compare(before: Evaluation, after: Evaluation, *, answers: bool = True) -> list[Pair]:
    """Case by case; what does worse stands first."""
    first = {line.name: line for line in case_lines(before)}
    second = {line.name: line for line in case_lines(after)}
    pairs = [
        _pair(name, first.get(name), second.get(name), answers=answers)
        for name in dict.fromkeys([*second, *first])
    ]
    order = ["regressed", "not_tried", "improved", "new", "gone", "same"]
    return sorted(pairs, key=lambda pair: order.index(pair.change))


def _pair(name: str, before: CaseLine | None, after: CaseLine | None, *, answers: bool) -> Pair:
    if before is None or after is None:
        return Pair(name, before, after, "new" if before is None else "gone", case_changed=False)
    change: Literal["regressed", "improved", "same", "not_tried"] = "same"
    if not after.tries:
        change = "not_tried"
    elif after.share != before.share and before.tries:
        change = "regressed" if after.share < before.share else "improved"
    differs = answers and before.answer != after.answer
    return Pair(
        name,
        before,
        after,
        change,
        case_changed=before.digest != after.digest,
        lines=tuple(lines_between(before.answer, after.answer)) if differs else (),
    )


@dataclass(frozen=True, slots=True)
class Point:
    evaluation: Evaluation
    summary: Summary


def trend(suite: Suite) -> list[Point]:
    """The last evaluations that ran to their end, oldest first."""
    done = suite.evaluations.filter(state=Evaluation.State.DONE)
    rows = done.select_related("agent_version__agent", "started_by").order_by("-id")[:TREND]
    return [Point(each, summary(each)) for each in reversed(rows)]


def is_used(*, agent: Agent | None = None, environment: Environment | None = None) -> bool:
    wanted = Q()
    if agent is not None:
        wanted |= Q(agent_version__agent=agent)
    if environment is not None:
        wanted |= Q(environment=environment)
    return bool(wanted) and Evaluation.objects.filter(wanted).exists()


def _sum(costs: Sequence[Decimal | None]) -> Decimal | None:
    """None where one of them is unknown."""
    return None if None in costs else sum((cost for cost in costs if cost), Decimal(0))
