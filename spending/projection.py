"""What model calls cost, with the log: reserved before each, recorded and settled behind it.

Every call here is in the transaction of the event. What is reserved and how is `budgets`' part, what a
usage row holds `recording`'s.
"""

from __future__ import annotations

from conversations import logsql
from conversations.models import Conversation, Event
from harness.events import (
    BudgetReached,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    load,
)
from harness.events import Event as EventValue

from . import budgets, stops
from .recording import record_request_end

FOLLOWED = (SessionStatusRunning, SessionStatusIdle, SpanModelRequestStart, SpanModelRequestEnd)


def project(conversation: Conversation, row: Event, event: EventValue) -> None:
    """Raises `budgets.CapReached` for a call for which a budget has no room."""
    match event:
        case SpanModelRequestStart():
            budgets.reserve(conversation, row.uid, event, now=row.created_at)
        case SpanModelRequestEnd():
            begun = load(logsql.payload_of(event.model_request_start_id))
            if isinstance(begun, SpanModelRequestStart):
                record_request_end(conversation, begun, event, run=row.run)
        case SessionStatusRunning() if conversation.stop_reason == "budget_reached":
            stops.forget(conversation)
        case SessionStatusIdle(stop_reason=BudgetReached()):
            stops.look_again(conversation)
        case _:
            pass
