"""The order a person means, as it is now, held until the transaction ends."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Membership, User
from harness.errors import NotFound

from .models import StandingOrder


def own_order(actor: User, order: StandingOrder) -> StandingOrder:
    """Raises NotFound unless it is the actor's."""
    rows = StandingOrder.objects.visible_to(actor).filter(pk=order.pk)
    held = (
        rows.select_for_update(of=("self",), no_key=True)
        .select_related("organisation", "owner", "agent_version__agent", "environment")
        .first()
    )
    if held is None:
        raise NotFound(_("There is no such schedule."))
    return held


def may_go_on(order: StandingOrder) -> bool:
    """Whether its owner's account is open and she belongs to its organisation still."""
    return (
        order.owner.is_active
        and Membership.objects.filter(
            user=order.owner_id, organisation=order.organisation_id
        ).exists()
    )
