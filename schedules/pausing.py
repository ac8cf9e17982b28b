"""An order is paused and goes on: the change of the row, which is held, and who is told of it."""

from __future__ import annotations

from datetime import datetime

from audit.models import AuditEntry

from .auditing import about_order, announce_order
from .models import StandingOrder

PAUSED = ("paused_at", "pause", "pause_error", "pause_words", "next_due_at", "next_start_at")


def pause(
    order: StandingOrder,
    reason: StandingOrder.Pause,
    *,
    now: datetime,
    words: str = "",
    error: str = "",
) -> None:
    """Nothing, if it is paused already."""
    if order.paused_at is not None:
        return
    order.paused_at, order.pause = now, reason
    order.pause_error, order.pause_words = error[:60], words[:500]
    order.foresee()
    order.save(update_fields=[*PAUSED, "updated_at"])
    announce_order(order, "deployment.paused")


def pause_by_itself(
    order: StandingOrder,
    reason: StandingOrder.Pause,
    *,
    now: datetime,
    words: str = "",
    error: str = "",
) -> None:
    """As `pause`, and the audit log says that nobody did it."""
    if order.paused_at is None:
        pause(order, reason, now=now, words=words, error=error)
        about_order(AuditEntry.Action.SCHEDULE_PAUSED, None, order, reason=reason.value)


def resume(order: StandingOrder, *, now: datetime) -> None:
    """What was due meanwhile is settled: a pause is no outage."""
    order.paused_at, order.pause = None, ""
    order.pause_error = order.pause_words = ""
    order.failures = order.repeats = 0
    order.handled_at = max(order.handled_at, now)
    order.foresee()
    order.save(update_fields=[*PAUSED, "failures", "repeats", "handled_at", "updated_at"])
    announce_order(order, "deployment.unpaused")
