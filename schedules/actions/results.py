"""A person has a result sent again that did not reach whom it was for."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Conflict, NotFound
from jobs.dispatch import dispatch
from schedules.models import Delivery
from schedules.results import SEND


def send_again(*, actor: User, delivery: Delivery) -> Delivery:
    """With all its tries; who may have it is asked anew. Raises NotFound, and Conflict for one that was sent
    or is about to be."""
    with transaction.atomic():
        rows = Delivery.objects.visible_to(actor).filter(pk=delivery.pk)
        held = rows.select_for_update(of=("self",), no_key=True).first()
        if held is None:
            raise NotFound(_("There is no such result."))
        if held.state not in {Delivery.State.FAILED, Delivery.State.LEFT_OUT}:
            raise Conflict(_("Only what failed or was left out is sent again."))
        held.state, held.why, held.tries = Delivery.State.WAITING, "", 0
        held.save(update_fields=["state", "why", "tries", "changed_at"])
        dispatch(SEND)
    return held
