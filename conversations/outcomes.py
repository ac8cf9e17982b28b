"""How the outcomes of conversations stand, as their logs tell it.

Asking for one is `actions.outcomes`'s part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from harness.events import (
    CriterionJudged,
    OutcomeCheckRan,
    Rewound,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    UserDefineOutcome,
)

from .ancestry import ancestors
from .models import Conversation, Event

State = Literal[
    "pending",
    "running",
    "evaluating",
    "satisfied",
    "max_iterations_reached",
    "failed",
    "interrupted",
]
"""The public vocabulary's: before the work, during it, while it is judged, and the four ends."""

_TOLD_BY = (
    "user.define_outcome",
    "x.input_taken",
    "span.outcome_evaluation_start",
    "x.outcome_check_ran",
    "span.outcome_evaluation_end",
    "x.rewound",
)


@dataclass(frozen=True, slots=True)
class Judged:
    """One evaluation that has ended."""

    at: datetime
    result: str
    explanation: str
    criteria: tuple[CriterionJudged, ...]
    checks: tuple[OutcomeCheckRan, ...] = ()

    @property
    def met(self) -> int:
        return sum(each.met for each in self.criteria)


@dataclass(slots=True)
class Standing:
    """One outcome, as it stands."""

    uid: str
    """Of the event that asked for it."""
    defined: UserDefineOutcome
    seq: int
    state: State = "pending"
    iteration: int = 0
    """Of the newest evaluation, counted from 0."""
    evaluations: list[Judged] | None = None
    checks: tuple[OutcomeCheckRan, ...] = ()
    """Those of the evaluation that is under way."""
    completed_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.completed_at is not None

    @property
    def explanation(self) -> str:
        return self.evaluations[-1].explanation if self.evaluations else ""


def outcomes_of(conversations: Sequence[int]) -> dict[int, list[Standing]]:
    """Of each of these conversations its outcomes, oldest first, of every branch; one whose branch was left
    before it ended is interrupted. Conversations without one are not in it."""
    defined = Event.objects.filter(
        conversation__in=conversations, type="user.define_outcome"
    ).values_list("conversation", flat=True)
    having = set(defined)
    if not having:
        return {}
    found: dict[int, list[Standing]] = {}
    rows = Event.objects.filter(conversation__in=having, type__in=_TOLD_BY)
    for row in rows.order_by("conversation", "seq"):
        _fold(found.setdefault(row.conversation_id, []), row)
    return found


def is_reached(conversation: Conversation) -> bool:
    """Whether the last outcome that was asked for is: there, and where its agent was told to do a part of it.
    True where none was."""
    found = outcomes_of([conversation.pk, *ancestors(conversation)])
    return all(standing[-1].state == "satisfied" for standing in found.values())


def _fold(found: list[Standing], row: Event) -> None:
    value = row.value
    if isinstance(value, UserDefineOutcome):
        found.append(Standing(row.uid, value, row.seq, evaluations=[]))
        return
    open_ = next((each for each in reversed(found) if not each.is_over), None)
    if open_ is None:
        return
    match value:
        case SpanOutcomeEvaluationStart():
            open_.state, open_.iteration, open_.checks = "evaluating", value.iteration, ()
        case OutcomeCheckRan():
            open_.checks = (*open_.checks, value)
        case SpanOutcomeEvaluationEnd():
            judged = Judged(
                row.created_at, value.result, value.explanation, value.criteria, open_.checks
            )
            open_.checks = ()
            open_.evaluations = [*(open_.evaluations or ()), judged]
            open_.iteration = value.iteration
            open_.state = "running" if value.result == "needs_revision" else value.result
            open_.completed_at = None if value.result == "needs_revision" else row.created_at
        case Rewound():
            if value.behind < open_.seq:
                open_.state, open_.completed_at = "interrupted", row.created_at
        case _:
            if open_.state == "pending" and open_.uid in row.payload["event_ids"]:
                open_.state = "running"
