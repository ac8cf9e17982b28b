"""Whether a conversation takes its runs' processes with it: then it is not tried again.

What becomes of such a conversation's turn is `deadletters`' part.
"""

from __future__ import annotations

from itertools import takewhile

from django.conf import settings
from django.db.models import OuterRef, Q, Subquery

from harness.events import ANSWERS, CALLS, StopDetails
from jobs.prepared import Prepared

from .models import Event, Run

INTERNAL = "internal"
"""A run broke on a fault of this server's."""
RUN_LOST = "run_lost"
"""Runs kept ending with their process."""
SHARED_LOSSES = 5
"""So many losses that other conversations shared count as one of a conversation's own."""

_INPUTS = (
    *("user.message", "user.interrupt", "user.tool_confirmation", "x.retry_requested"),
    *(kind for kind in ANSWERS if kind.startswith("user.")),
)
_WORK = ("agent.message", "agent.thinking", *CALLS)

_LAST = Prepared(
    lambda given: (
        Run.objects.filter(conversation=given.conversation)
        .exclude(state=Run.State.RUNNING)
        .order_by("-id")
        .values_list("state")[:1]
    )
)


def last_state() -> Subquery:
    """How a conversation's last run ended, for a query that asks for more; where it was not lost,
    `is_poisoned` says no."""
    ended = Run.objects.filter(conversation=OuterRef("pk")).exclude(state=Run.State.RUNNING)
    return Subquery(ended.order_by("-id").values("state")[:1])


def is_poisoned(conversation_id: int) -> bool:
    """Whether the last AGENTSITE_LOST_RUNS runs were all lost and none of them got anywhere.

    Getting anywhere is a finished model request, something said, or the outcome of a call; what a
    person does in between gives as many runs again. A process that took runs of other conversations
    along says little of this one: only so many times as many such losses (`SHARED_LOSSES`) count.
    """
    last = _suspicious_runs(conversation_id)
    if not last:
        return False
    events = Event.objects.filter(conversation_id=conversation_id)
    asked = Q(type__in=_INPUTS, created_at__gt=last[-1].started_at)
    worked = Q(run__in=last) & (
        Q(type__in=_WORK)
        | Q(type="span.model_request_end", payload__is_error=False)
        | Q(type__in=ANSWERS) & ~Q(payload__outcome="unknown")
    )
    return not events.filter(asked | worked).exists()


def _suspicious_runs(conversation_id: int) -> list[Run]:
    """The newest runs, as many as make a suspicion; none where there is no suspicion."""
    last = _LAST.first(conversation=conversation_id)
    if last is None or last[0] != Run.State.LOST:
        return []
    allowed = settings.AGENTSITE_LOST_RUNS
    runs = Run.objects.filter(conversation_id=conversation_id).exclude(state=Run.State.RUNNING)
    ended = runs.order_by("-id")[: allowed * SHARED_LOSSES]
    lost = list(takewhile(lambda run: run.state == Run.State.LOST, ended))
    if len(lost) < allowed:
        return []
    others = Run.objects.filter(worker__in={run.worker for run in lost}, state=Run.State.LOST)
    shared = set(others.exclude(conversation_id=conversation_id).values_list("worker", flat=True))
    alone = 0
    for number, run in enumerate(lost, start=1):
        alone += run.worker not in shared
        if alone == allowed or number == allowed * SHARED_LOSSES:
            return lost[:number]
    return []


def poisoned_details() -> StopDetails:
    return StopDetails(
        code=RUN_LOST,
        message=(
            f"At least {settings.AGENTSITE_LOST_RUNS} processes in a row ended while they worked on this."
        ),
        hint="Tell the people who run this server: it is listed there as a dead letter.",
    )
