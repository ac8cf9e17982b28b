"""Calls for workers as the log opens and closes them, always in the transaction of the event.

Whoever hands a call out sees to it that there is a work item, so that a worker hears of it. What
workers do with one is `work`'s.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.utils import timezone

from conversations.models import Conversation, Event
from harness.events import (
    ApprovalRequested,
    CallHandedOut,
    OutcomeUnknown,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusTerminated,
    UserToolResult,
)
from harness.events import Event as EventValue
from jobs.prepared import Prepared
from live.hub import hub

from .models import HandedCall, WorkItem

_HANDED = Prepared(
    lambda given: HandedCall.objects.filter(conversation=given.conversation).values_list("pk")[:1]
)
_CALLS = Prepared(
    lambda given: HandedCall.objects.filter(conversation=given.conversation).values_list("call_uid")
)


FOLLOWED = (
    CallHandedOut,
    UserToolResult,
    OutcomeUnknown,
    ApprovalRequested,
    SessionStatusIdle,
    SessionStatusTerminated,
)


def project(conversation: Conversation, row: Event, event: EventValue) -> None:
    """Carry one event over to the calls that workers have or are to take."""
    match event:
        case CallHandedOut() if not event.carrier:
            HandedCall.objects.create(
                conversation=conversation,
                call_uid=event.tool_use_id,
                seq=row.seq,
                effect=event.effect,
                idempotent=event.idempotent,
            )
            queue(conversation)
        case UserToolResult() | OutcomeUnknown() | ApprovalRequested():
            close(conversation, event.tool_use_id)
        case SessionStatusIdle(stop_reason=RequiresAction(event_ids=calls)):
            # One that was answered by a stop or another end needs no worker any more.
            if handed_calls(conversation) - set(calls):
                HandedCall.objects.filter(conversation=conversation).exclude(
                    call_uid__in=calls
                ).delete()
        case SessionStatusIdle() | SessionStatusTerminated():
            if _HANDED.exists(conversation=conversation.pk):
                HandedCall.objects.filter(conversation=conversation).delete()
                _drop_queued(conversation)
        case _:
            pass


def handed_calls(conversation: Conversation) -> set[str]:
    """The calls that workers have or are to take."""
    return {call for (call,) in _CALLS.all(conversation=conversation.pk)}


def close(conversation: Conversation, call_uid: str) -> None:
    HandedCall.objects.filter(conversation=conversation, call_uid=call_uid).delete()


def queue(conversation: Conversation) -> None:
    """Have a work item for the conversation, unless one is alive; its lock is held."""
    if WorkItem.objects.filter(conversation=conversation).alive().exists():
        return
    environment = conversation.environment
    WorkItem.objects.create(environment=environment, conversation=conversation)
    transaction.on_commit(partial(hub.nudge, environment.uid, 0))


def _drop_queued(conversation: Conversation) -> None:
    """Nobody took it, and nothing is left to be done."""
    waiting = WorkItem.objects.filter(conversation=conversation, state=WorkItem.State.QUEUED)
    waiting.update(
        state=WorkItem.State.STOPPED,
        ending=WorkItem.Ending.NEEDLESS,
        stopped_at=timezone.now(),
    )
