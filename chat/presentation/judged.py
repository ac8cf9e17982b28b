"""How outcomes and their evaluations are told to people: in words, criterion by criterion.

What they are is `conversations.outcomes`'s part; the unit in the transcript is drawn by `units`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from conversations.outcomes import Standing
from harness.events import CriterionJudged, OutcomeCheckRan
from reading.unseen import visible

_STATES: dict[str, Callable[[], str]] = {
    "pending": lambda: _("waits for its turn"),
    "running": lambda: _("is worked on"),
    "evaluating": lambda: _("is judged"),
    "satisfied": lambda: _("every criterion is met"),
    "max_iterations_reached": lambda: _("judged for the last time and not met"),
    "failed": lambda: _("could not be judged"),
    "interrupted": lambda: _("stopped"),
}


@dataclass(frozen=True, slots=True)
class ShownCheck:
    run: str
    passed: bool
    ending: str
    output: str
    criterion: int | None = None


@dataclass(frozen=True, slots=True)
class ShownEvaluation:
    number: int
    words: str
    explanation: str
    criteria: tuple[CriterionJudged, ...]
    checks: tuple[ShownCheck, ...] = ()
    trend: str = ""
    """Against the judgement before it, where both judged criteria."""


@dataclass(frozen=True, slots=True)
class ShownOutcome:
    description: str
    state: str
    met: bool
    evaluations: tuple[ShownEvaluation, ...]


def shown(standing: Standing) -> ShownOutcome:
    judged = standing.evaluations or ()
    before = (None, *(each.criteria for each in judged))
    return ShownOutcome(
        description=standing.defined.description,
        state=_STATES[standing.state](),
        met=standing.state == "satisfied",
        evaluations=tuple(
            ShownEvaluation(
                number,
                result_words(each.result, each.criteria),
                visible(each.explanation),
                shown_criteria(each.criteria),
                shown_checks(each.checks),
                trend_words(earlier, each.criteria),
            )
            for number, (each, earlier) in enumerate(zip(judged, before, strict=False), 1)
        ),
    )


def shown_criteria(criteria: tuple[CriterionJudged, ...]) -> tuple[CriterionJudged, ...]:
    """With every sign of what the judge said in view."""
    return tuple(each.model_copy(update={"reason": visible(each.reason)}) for each in criteria)


def shown_checks(checks: Iterable[OutcomeCheckRan]) -> tuple[ShownCheck, ...]:
    """With every sign in view of what they printed."""
    return tuple(
        ShownCheck(
            visible(each.run),
            each.passed,
            ", ".join(_ending(each)),
            visible(each.output.rstrip("\n")),
            each.criterion,
        )
        for each in checks
    )


def _ending(check: OutcomeCheckRan) -> Iterator[str]:
    if check.exit_code is not None:
        yield _("exit code %(code)d") % {"code": check.exit_code}
    if check.problem:
        yield visible(check.problem)


def trend_words(
    before: tuple[CriterionJudged, ...] | None, now: tuple[CriterionJudged, ...]
) -> str:
    """Whether more is met than at the judgement before."""
    if not (before and now):
        return ""
    change = sum(each.met for each in now) - sum(each.met for each in before)
    if change:
        return _("better than before") if change > 0 else _("worse than before")
    same = [each.met for each in before] == [each.met for each in now]
    return _("the same as before") if same else _("as many as before, and others")


def result_words(result: str, criteria: tuple[CriterionJudged, ...]) -> str:
    """What an evaluation came to, in a sentence."""
    count = len(criteria)
    met = sum(each.met for each in criteria)
    match result:
        case "satisfied":
            return ngettext(
                "Judged: the criterion is met.", "Judged: all %(count)d criteria are met.", count
            ) % {"count": count}
        case "interrupted":
            return _("The work on the outcome was stopped.")
        case "failed":
            return _("The work could not be judged.")
        case "max_iterations_reached":
            words = ngettext(
                "Judged for the last time: %(met)d of %(count)d criterion met.",
                "Judged for the last time: %(met)d of %(count)d criteria met.",
                count,
            )
        case _:
            words = ngettext(
                "Judged: %(met)d of %(count)d criterion met. The agent goes on.",
                "Judged: %(met)d of %(count)d criteria met. The agent goes on.",
                count,
            )
    return words % {"met": met, "count": count}
