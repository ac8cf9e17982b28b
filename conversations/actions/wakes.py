"""What becomes of an agent's delayed wakes before they are due: a person has one come now, later or never.
By stopping she cancels all of them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.staff import require_staff
from conversations.actions.own import own_conversation
from conversations.models import Wake
from conversations.wakes import wake as hint
from harness.errors import Conflict, Invalid, NotFound

LONGEST_DELAY = timedelta(days=31)
"""By which one may be put off at once."""


def cancel_wake(*, actor: User, wake: Wake) -> None:
    """Have an agent's wake not come due. For operators; raises Forbidden, and Conflict when it no longer
    waits or belongs to a failed request: that is ended by stopping the turn."""
    require_staff(actor, "conversations.change_wake")
    waiting = Wake.objects.waiting().filter(pk=wake.pk, kind=Wake.Kind.AGENT)
    if not waiting.update(state=Wake.State.CANCELLED):
        raise _waits_no_more()


def drop_wake(*, actor: User, wake: Wake) -> None:
    """As `cancel_wake`, for the owner of its conversation. Raises NotFound, Forbidden, Conflict."""
    with transaction.atomic():
        held = _held(actor, wake)
        held.state = Wake.State.CANCELLED
        held.save(update_fields=["state"])


def hasten_wake(*, actor: User, wake: Wake) -> None:
    """Have it come due now. Raises as `drop_wake`."""
    with transaction.atomic():
        held = _held(actor, wake)
        held.due_at = timezone.now()
        held.save(update_fields=["due_at"])
        hint(held.conversation_id, delay=0.05)


def put_off_wake(*, actor: User, wake: Wake, by: timedelta) -> datetime:
    """Have it come due so much later than it would have; when that is. Raises as `drop_wake`, and Invalid."""
    if not timedelta(0) < by <= LONGEST_DELAY:
        raise Invalid(
            _("It can be put off by %(days)d days at most.") % {"days": LONGEST_DELAY.days},
            field="minutes",
        )
    with transaction.atomic():
        held = _held(actor, wake)
        now = timezone.now()
        held.due_at = max(held.due_at, now) + by
        held.save(update_fields=["due_at"])
        hint(held.conversation_id, delay=(held.due_at - now).total_seconds() + 0.05)
        return held.due_at


def _held(actor: User, wake: Wake) -> Wake:
    found = Wake.objects.visible_to(actor).filter(pk=wake.pk).select_related("conversation").first()
    if found is None:
        raise NotFound(_("There is no such timer."))
    own_conversation(actor, found.conversation)
    waiting = Wake.objects.waiting().filter(pk=wake.pk, kind=Wake.Kind.AGENT)
    held = waiting.select_for_update(no_key=True).first()
    if held is None:
        raise _waits_no_more()
    return held


def _waits_no_more() -> Conflict:
    return Conflict(_("This wake no longer waits."))
