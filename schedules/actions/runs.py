"""A person has a standing order begin now, whatever the clock says."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Conflict
from schedules import running
from schedules.access import own_order
from schedules.models import OrderRun, StandingOrder


def run_now(*, actor: User, order: StandingOrder) -> OrderRun:
    """A run that has begun, or says why it did not; also of an order that is paused, and beside a run that
    is at work. Raises NotFound, Conflict for one that is archived."""
    with transaction.atomic():
        held = own_order(actor, order)
        if held.archived_at is not None:
            raise Conflict(_("This schedule is archived."), hint=_("Make a new one."))
        run = running.queue_run(held, OrderRun.Trigger.MANUAL)
    running.begin(run.pk)
    run.refresh_from_db()
    return run
