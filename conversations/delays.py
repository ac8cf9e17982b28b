"""Delayed wakes as they are asked for, come due and are cancelled; always with the event, in its
transaction. Telling a worker that one is due is `wakes`' part, and only a hint.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from harness.events import SessionStatusRescheduled, WakeDue, WakeRequested
from harness.history import Entry
from jobs.prepared import Prepared

from .models import Conversation, Event, Wake
from .wakes import wake

_RETRIES = Prepared(
    lambda given: Wake.objects.waiting().filter(
        conversation=given.conversation, kind=Wake.Kind.RETRY
    )
)


def ask(conversation: Conversation, row: Event, event: WakeRequested) -> None:
    """Keep an agent's wake; one that waits under the same key already stays as it is."""
    waiting = Wake.objects.waiting().filter(conversation=conversation)
    if event.dedupe_key and waiting.filter(dedupe_key=event.dedupe_key).exists():
        return
    _keep(
        conversation,
        row,
        Wake.Kind.AGENT,
        event.delay_seconds,
        reason=event.reason,
        note=event.note,
        priority=event.priority,
        dedupe_key=event.dedupe_key,
    )


def put_off(conversation: Conversation, row: Event, event: SessionStatusRescheduled) -> None:
    _keep(conversation, row, Wake.Kind.RETRY, event.delay_seconds)


def cancel(conversation: Conversation) -> None:
    """A person interrupted: nothing of what waits is to happen any more."""
    waiting = Wake.objects.waiting().filter(conversation=conversation)
    waiting.update(state=Wake.State.CANCELLED)


def retried(conversation: Conversation) -> None:
    """The run goes on: what was put off is put off no more."""
    if not _RETRIES.exists(conversation=conversation.pk):
        return
    retries = Wake.objects.waiting().filter(conversation=conversation, kind=Wake.Kind.RETRY)
    retries.update(state=Wake.State.DONE)


def hurry(conversation: Conversation) -> None:
    """A person would not wait: what was put off is due now."""
    retries = Wake.objects.waiting().filter(conversation=conversation, kind=Wake.Kind.RETRY)
    retries.update(due_at=timezone.now())


def take_due(conversation_id: int) -> list[Entry]:
    """The due wakes of an agent as events to append, in the transaction this is called in: one that
    a failed run consumed is in the log and still waits to be taken there."""
    due = Wake.objects.due().filter(conversation_id=conversation_id, kind=Wake.Kind.AGENT)
    if not due.exists():
        return []
    # As everybody who writes to what belongs to a conversation.
    Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).first()
    # Exactly the rows that were read are done: time goes on between two looks at the clock.
    rows = list(due.select_for_update().order_by("due_at", "id"))
    Wake.objects.filter(pk__in=[row.pk for row in rows]).update(state=Wake.State.DONE)
    return [
        Entry.of(
            WakeDue.model_validate(
                {"reason": row.reason, "note": row.note, "priority": row.priority}
            )
        )
        for row in rows
    ]


def any_due() -> Exists:
    """Whether `take_due` would find anything in a conversation, for a query that asks for more."""
    return Exists(Wake.objects.due().filter(conversation=OuterRef("pk"), kind=Wake.Kind.AGENT))


def is_put_off(conversation_id: int) -> bool:
    """Whether a failed request waits for a time that has not come."""
    if not _RETRIES.exists(conversation=conversation_id):
        return False
    retries = Wake.objects.due().filter(conversation_id=conversation_id, kind=Wake.Kind.RETRY)
    return not retries.exists()


def _keep(
    conversation: Conversation, row: Event, kind: Wake.Kind, seconds: float, **fields: str
) -> None:
    Wake.objects.create(
        conversation=conversation,
        kind=kind,
        due_at=timezone.now() + timedelta(seconds=seconds),
        event_uid=row.uid,
        **fields,
    )
    transaction.on_commit(partial(wake, conversation.pk, delay=seconds + 0.05))
