"""Writes the journal of claims, each row with the change of the run it tells of, and prunes it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from jobs.prepared import Prepared

from . import logsql
from .models import Activation, Conversation, Run, Wake

PRUNED_AT_ONCE = 2_000
"""Rows that one sweep deletes at most, so that it never holds the table for long."""

_DUE = Prepared(
    lambda given: (
        Wake.objects.due()
        .filter(conversation=given.conversation)
        .order_by("pk")
        .values_list("kind")
    )
)


def lease(run: Run, *, cause: Activation.Cause) -> None:
    """A due row says more about why the run is here than how it was told."""
    due = {kind for (kind,) in _DUE.all(conversation=run.conversation_id)}
    if Wake.Kind.RETRY in due:
        cause = Activation.Cause.RETRY
    elif due:
        cause = Activation.Cause.DUE_WAKE
    _add([run], Activation.Step.LEASED, cause=cause)


def end(run: Run, step: Activation.Step, detail: str = "") -> None:
    _add([run], step, detail=detail)


def abandon(runs: Iterable[Run]) -> None:
    """Their process is gone, or their lease ran out."""
    _add(runs, Activation.Step.ABANDONED)


def step_of(conversation: Conversation, *, skipped: bool) -> Activation.Step:
    """How a claim ends with the conversation as it is now."""
    status = Conversation.Status
    if conversation.status in {status.RUNNING, status.RESCHEDULING}:
        return Activation.Step.REQUEUED
    if skipped:
        return Activation.Step.SKIPPED
    if conversation.owes_run:
        return Activation.Step.REQUEUED
    if conversation.waits_for_person or conversation.waits_for_worker:
        return Activation.Step.BLOCKED
    return Activation.Step.ACKED


def prune() -> int:
    """Delete what is older than AGENTSITE_JOURNAL_DAYS; how many rows that were."""
    before = timezone.now() - timedelta(days=settings.AGENTSITE_JOURNAL_DAYS)
    old = Activation.objects.filter(created_at__lt=before).order_by("created_at")
    pks = list(old.values_list("pk", flat=True)[:PRUNED_AT_ONCE])
    return Activation.objects.filter(pk__in=pks).delete()[0] if pks else 0


def _add(
    runs: Iterable[Run],
    step: Activation.Step,
    *,
    cause: Activation.Cause | str = "",
    detail: str = "",
) -> None:
    logsql.insert(
        [
            Activation(
                conversation_id=run.conversation_id,
                run=run,
                step=step,
                cause=cause,
                worker=run.worker,
                detail=detail[:200],
            )
            for run in runs
        ]
    )
