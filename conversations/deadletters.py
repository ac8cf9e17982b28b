"""Dead letters as the log opens, grows and settles them, always in the transaction of the event.

A turn that ends in a failure leaves one; going on well settles it, whoever had it tried again. What
operators do with one is in `actions.deadletters`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from django.conf import settings
from django.db.models import Count, Q
from django.utils import timezone

from harness import errors
from harness.events import (
    EndTurn,
    RequiresAction,
    RetriesExhausted,
    SessionStatusIdle,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    StopDetails,
)
from jobs.prepared import Prepared

from .models import Conversation, DeadLetter, Event, Run
from .models.deadletter import DeadLetterQuerySet

INTERNAL = "internal"
"""A run broke on a fault of this server's."""
RUN_LOST = "run_lost"
"""Runs kept ending with their process."""
SHARED_LOSSES = 5
"""So many losses that other conversations shared count as one of a conversation's own."""

_TURN_EDGES = ("x.input_taken", "x.retry_requested", "session.status_idle")
_INPUTS = (
    "user.message",
    "user.interrupt",
    "user.tool_confirmation",
    "user.tool_result",
    "x.retry_requested",
)
_WORK = ("agent.message", "agent.thinking", "agent.tool_use", "agent.mcp_tool_use")

_LAST = Prepared(
    lambda given: (
        Run.objects.filter(conversation=given.conversation)
        .exclude(state=Run.State.RUNNING)
        .order_by("-id")
        .values_list("state")[:1]
    )
)
_UNSETTLED = Prepared(
    lambda given: DeadLetter.objects.unsettled().filter(conversation=given.conversation)
)


def _codes(kind: type[errors.ProviderError]) -> Iterator[str]:
    if kind.retryable:
        yield kind.code
    for narrower in kind.__subclasses__():
        yield from _codes(narrower)


def cause_of(code: str) -> DeadLetter.Cause:
    """Transient when the same request may succeed later, by the word of `harness.errors`."""
    if code in {INTERNAL, RUN_LOST}:
        return DeadLetter.Cause.INTERNAL
    if code in set(_codes(errors.ProviderError)):
        return DeadLetter.Cause.TRANSIENT
    return DeadLetter.Cause.PERMANENT


# --- with the log ---------------------------------------------------------------------------------


def rested(conversation: Conversation, row: Event, rest: SessionStatusIdle) -> None:
    """Open or grow the conversation's letter after a failure; settle it when a turn ended well."""
    match rest.stop_reason:
        case RetriesExhausted():
            details = rest.stop_details or StopDetails(code="provider_error", message="")
            _keep(conversation, row, details)
        case EndTurn() if not rest.interrupted:
            _settle(conversation)
        case RequiresAction():
            pass  # the turn goes on once somebody answers
        case _:
            replayed = DeadLetter.objects.filter(
                conversation=conversation, state=DeadLetter.State.REPLAYED
            )
            replayed.update(state=DeadLetter.State.OPEN, closed_at=None, closed_by=None)


def _keep(conversation: Conversation, row: Event, details: StopDetails) -> None:
    failed = _failing_streak(conversation, row.seq)
    found = {
        "organisation_id": conversation.organisation_id,
        "run": row.run,
        "state": DeadLetter.State.OPEN,
        "code": details.code[:60],
        "cause": cause_of(details.code),
        "request_seq": failed.request_seq,
        "error_seq": _error_seq(conversation, row),
        "message": details.message,
        "hint": details.hint,
        "provider": failed.provider[:50],
        "model": failed.model[:100],
        "failed_at": row.created_at,
        "closed_at": None,
        "closed_by": None,
    }
    attempts = failed.calls
    if details.code == RUN_LOST:
        attempts = max(attempts, settings.AGENTSITE_LOST_RUNS)
    held = _UNSETTLED.first(conversation=conversation.pk)
    if held is None:
        DeadLetter.objects.create(conversation=conversation, attempts=attempts, **found)
        return
    for name, value in found.items():
        setattr(held, name, value)
    held.attempts += attempts
    held.save(update_fields=[*found, "attempts"])


def _settle(conversation: Conversation) -> None:
    held = _UNSETTLED.first(conversation=conversation.pk)
    if held is None:
        return
    retry = (
        Event.objects.filter(
            conversation=conversation, type="x.retry_requested", seq__gt=held.error_seq
        )
        .order_by("-seq")
        .first()
    )
    held.state = DeadLetter.State.RESOLVED
    held.closed_at = timezone.now()
    held.closed_by = retry.actor if retry else None
    held.save(update_fields=["state", "closed_at", "closed_by"])


@dataclass(frozen=True, slots=True)
class _Streak:
    """Model requests that failed one after another, and where the last of them stands."""

    calls: int = 0
    request_seq: int | None = None
    provider: str = ""
    model: str = ""


def _failing_streak(conversation: Conversation, before: int) -> _Streak:
    edges = Event.objects.filter(conversation=conversation, type__in=_TURN_EDGES, seq__lt=before)
    edge = edges.order_by("-seq").values_list("seq", flat=True).first() or 0
    ends = Event.objects.filter(
        conversation=conversation, type="span.model_request_end", seq__gt=edge, seq__lt=before
    ).order_by("-seq")
    calls, last = 0, None
    for row in ends.only("payload").iterator(chunk_size=50):
        end = row.value
        if not isinstance(end, SpanModelRequestEnd) or not end.is_error:
            break
        calls += 1
        last = last or end.model_request_start_id
    start = Event.objects.filter(uid=last).first() if last else None
    if start is None or not isinstance(value := start.value, SpanModelRequestStart):
        return _Streak(calls)
    return _Streak(calls, start.seq, value.provider, value.model)


def _error_seq(conversation: Conversation, row: Event) -> int:
    said = Event.objects.filter(conversation=conversation, type="session.error", seq__lt=row.seq)
    return said.order_by("-seq").values_list("seq", flat=True).first() or row.seq


# --- runs that take their process with them -------------------------------------------------------


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
        | Q(type__in=["agent.tool_result", "agent.mcp_tool_result"])
        & ~Q(payload__outcome="unknown")
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


# --- figures --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    cause: DeadLetter.Cause
    code: str
    letters: int


def counts(letters: DeadLetterQuerySet | None = None) -> list[Figure]:
    """How many of `letters` (the open ones) there are by class and code, most first."""
    chosen = DeadLetter.objects.open() if letters is None else letters
    rows = chosen.order_by().values_list("cause", "code").annotate(letters=Count("pk"))
    return [
        Figure(DeadLetter.Cause(cause), code, number)
        for cause, code, number in rows.order_by("-letters", "cause", "code")
    ]
