"""Dead letters as the log opens, grows and settles them, always in the transaction of the event.

A turn that ends in a failure leaves one; going on well settles it, whoever had it tried again. What
operators do with one is in `actions.deadletters`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count
from django.utils import timezone

from conversations.lostruns import INTERNAL, RUN_LOST
from conversations.models import Conversation, Event
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
from harness.events import Event as EventValue
from jobs.prepared import Prepared

from .models import DeadLetter, DeadLetterQuerySet

_TURN_EDGES = ("x.input_taken", "x.retry_requested", "session.status_idle")
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


FOLLOWED = (SessionStatusIdle,)


def project(conversation: Conversation, row: Event, rest: EventValue) -> None:
    """Open or grow the conversation's letter after a failure; settle it when a turn ended well."""
    if not isinstance(rest, SessionStatusIdle):
        return
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
