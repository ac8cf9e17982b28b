"""What operators do with delayed wakes: cancel one. A person cancels all of hers by stopping."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.staff import require_staff
from conversations.models import Wake
from harness.errors import Conflict


def cancel_wake(*, actor: User, wake: Wake) -> None:
    """Have an agent's wake not come due. Raises Forbidden, and Conflict when it no longer waits or
    belongs to a failed request: that is ended by stopping the turn."""
    require_staff(actor, "conversations.change_wake")
    waiting = Wake.objects.waiting().filter(pk=wake.pk, kind=Wake.Kind.AGENT)
    if not waiting.update(state=Wake.State.CANCELLED):
        raise Conflict(_("This wake no longer waits."))
