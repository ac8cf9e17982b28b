"""The order a person means, as it is now, held until the transaction ends."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Membership, User
from harness.errors import NotFound
from jobs.prepared import Prepared

from .models import StandingOrder

_MEMBERSHIP = Prepared(
    lambda given: Membership.objects.filter(
        user=given.user, organisation=given.organisation
    ).values_list("pk")
)
"""Asked for each due time, and for each run that begins."""


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
    held = _MEMBERSHIP.first(user=order.owner_id, organisation=order.organisation_id)
    return order.owner.is_active and held is not None
