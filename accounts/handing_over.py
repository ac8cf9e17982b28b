"""Hands the service accounts of somebody who leaves to who answers for them from then on.

Else what others do through them would go on counting as hers, or, without a maker, as nobody's. Whose
place an account takes says `persons`; who may leave or be removed, the actions.
"""

from __future__ import annotations

from accounts.happenings import Happening, emit
from accounts.models import Membership, User
from accounts.persons import MANAGING


def hand_over_service_accounts(*, actor: User, maker: User, organisation_id: int) -> None:
    """To the owner who has belonged to the organisation for longest, else to another who manages it.
    In the transaction in which `maker` leaves; `actor` is who has her leave."""
    theirs = User.objects.filter(made_by=maker, memberships__organisation=organisation_id)
    accounts = list(theirs.order_by("pk"))
    if not accounts:
        return
    others = (
        Membership.objects.filter(
            organisation=organisation_id, user__kind=User.Kind.PERSON, user__is_active=True
        )
        .exclude(user=maker)
        .select_related("user", "organisation")
        .order_by("created_at", "pk")
    )
    heir = others.owners().first() or others.filter(role__in=MANAGING).first()
    if heir is None:
        return
    theirs.update(made_by=heir.user)
    for account in accounts:
        emit(
            Happening.SERVICE_HANDED_ON,
            actor=actor,
            organisation=heir.organisation,
            member=account,
            account=account.first_name,
            heir=heir.user,
        )
