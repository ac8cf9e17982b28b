"""How much a tree of conversations may be: depth, width, how many in all, and what is left for one more.

Asked with the tree's lock held, so it holds for all processes together. Money and the budgets of people are
`spending`'s, which counts a whole tree as one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Q

from conversations.ancestry import ancestors
from conversations.models import Conversation
from harness.agentconfig import Limits
from harness.errors import LimitReached
from harness.history import History
from jobs.prepared import Prepared

from .models import Subagent

LEAST_TOKENS = 2_000
"""With less than that left nobody begins: a first request alone would use it up."""
LEAST_SECONDS = 10
"""The shortest time that `Limits` knows."""


_COUNTS = Prepared(
    lambda given: (
        Subagent.objects.filter(root=given.root)
        .order_by()
        .values("root")
        .annotate(
            working=Count("pk", filter=Q(state=Subagent.State.RUNNING)), begun=Count("started_at")
        )
        .values_list("working", "begun")
    )
)
"""Of a tree: how many are at work, and how often one has begun."""


@dataclass(frozen=True, slots=True)
class Left:
    """What of a turn's limits is left at this moment, with nothing of it reserved for others."""

    tokens: int
    steps: int
    seconds: int


def left_of(parent: Conversation, history: History, *, now: float | None = None) -> Left:
    """What the parent's turn has left; between turns, what a turn begins with."""
    limits, turn = parent.config.limits, history.turn
    if not turn.open:
        return Left(limits.token_budget, limits.steps, limits.wall_clock_seconds)
    clock = time.time() if now is None else now
    worked = clock - turn.began_at - turn.waited + turn.seconds_below
    if history.rested_at:
        worked -= clock - history.rested_at
    return Left(
        max(0, (turn.token_budget or limits.token_budget) - turn.tokens),
        max(0, limits.steps - turn.steps),
        max(0, int(limits.wall_clock_seconds - worked)),
    )


def require_room(row: Subagent) -> None:
    """Raises `LimitReached` where the tree has no place for it."""
    most = settings.AGENTSITE_SUBAGENT_DEPTH
    if len(ancestors(row.parent)) + 1 > most:
        raise LimitReached(
            f"Subagents may be nested {most} deep, and this conversation is as deep as that.",
            hint="Do the work yourself.",
        )
    working, in_tree = _COUNTS.first(root=row.root_id) or (0, 0)
    at_once = settings.AGENTSITE_SUBAGENTS_AT_ONCE
    if working >= at_once:
        raise LimitReached(
            f"{at_once} subagents are at work already, the most there may be.",
            hint="Wait for one of them to end, or do the work yourself.",
        )
    in_all = settings.AGENTSITE_SUBAGENTS_IN_ALL
    if in_tree >= in_all:
        raise LimitReached(
            f"This conversation has asked subagents {in_all} times, the most there may be.",
            hint="Do the rest yourself.",
        )


def allowance(own: Limits, left: Left, *, sharing: int, steps: int) -> Limits:
    """What one more may use: of what is left an equal part for each that is about to begin and for the
    parent itself, and never more than its agent's own limits. Raises `LimitReached` for too little."""
    tokens = min(own.token_budget, left.tokens // (max(sharing, 1) + 1))
    if tokens < LEAST_TOKENS:
        raise LimitReached(
            f"Only {left.tokens:,} tokens of this turn are left, too few for a subagent.",
            hint="Finish with what there is.",
        )
    if left.steps < 1 or left.seconds < LEAST_SECONDS:
        raise LimitReached(
            "This turn has no steps or no time left for a subagent.",
            hint="Finish with what there is.",
        )
    return own.model_copy(
        update={
            "token_budget": tokens,
            "steps": max(1, min(own.steps, left.steps, steps)),
            "wall_clock_seconds": min(own.wall_clock_seconds, left.seconds),
        }
    )
