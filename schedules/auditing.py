"""What the audit log and endpoints outside are told of standing orders."""

from __future__ import annotations

from accounts.models import User
from audit import record as audit
from audit.models import AuditEntry
from webhooks.outbox import announce

from .models import OrderRun, StandingOrder


def about_order(
    action: AuditEntry.Action, actor: User | None, order: StandingOrder, **details: str
) -> None:
    """`actor` None: it happened by itself."""
    audit.write(
        action,
        actor=actor,
        organisation_id=order.organisation_id,
        details={"schedule": order.uid, "name": order.name, **details},
    )


def announce_order(order: StandingOrder, event_type: str) -> None:
    announce(order.organisation_id, event_type, subject=order.uid)


def announce_run(run: OrderRun, *event_types: str) -> None:
    announce(run.order.organisation_id, *event_types, subject=run.uid)
