"""What endpoints outside hear of a log: which events are announced, under which names.

Writing deliveries is `webhooks.outbox`'s part.
"""

from __future__ import annotations

from harness.events import (
    BudgetReached,
    Event,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionStatusTerminated,
    SessionThreadCreated,
    SessionUpdated,
    SpanOutcomeEvaluationEnd,
)
from webhooks.outbox import announce, is_heard

from .ancestry import root_conversation
from .models import Conversation
from .models import Event as Row

FOLLOWED = (
    SessionStatusRunning,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusTerminated,
    SessionThreadCreated,
    SessionUpdated,
    SpanOutcomeEvaluationEnd,
)
"""Events of a log that somebody outside may want to hear of."""


def project(conversation: Conversation, row: Row, event: Event) -> None:
    """`announce` one of `FOLLOWED` as its conversation's log gains it."""
    types = _types_of(event, is_thread=conversation.parent_id is not None)
    if not types:
        return
    more = {}
    subject = conversation.uid
    if isinstance(event, SessionThreadCreated):
        more["session_thread_id"] = event.session_thread_id
    if conversation.parent_id is not None:
        if not is_heard(conversation.organisation_id):
            return
        more.setdefault("session_thread_id", conversation.uid)
        subject = root_conversation(conversation).uid
    announce(conversation.organisation_id, *types, subject=subject, **more)


def _types_of(event: Event, *, is_thread: bool) -> tuple[str, ...]:
    match event:
        case SessionThreadCreated():
            return ("session.thread_created",)
        case SessionStatusIdle() if is_thread:
            return ("session.thread_idled",)
        case SessionStatusTerminated() if is_thread:
            return ("session.thread_terminated",)
        case _ if is_thread:
            return ()
        case SessionStatusRunning():
            return ("session.running", "session.status_run_started")
        case SessionStatusIdle(stop_reason=RequiresAction()):
            return ("session.idled", "session.status_idled", "session.requires_action")
        case SessionStatusIdle(stop_reason=BudgetReached()):
            return ("session.idled", "session.status_idled", "session.budget_reached")
        case SessionStatusIdle():
            return ("session.idled", "session.status_idled")
        case SessionStatusRescheduled():
            return ("session.status_rescheduled",)
        case SessionStatusTerminated():
            return ("session.status_terminated",)
        case SessionUpdated():
            return ("session.updated",)
        case SpanOutcomeEvaluationEnd():
            return ("session.outcome_evaluation_ended",)
        case _:
            return ()
