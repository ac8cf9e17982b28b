"""Who may answer an approval, and which conditions of rules a person meets.

Which approvals a person sees is `Approval.objects.visible_to`; answering is `actions.approvals`.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from accounts.models import Membership, Role, User
from harness.rules import Condition

from .models import Approval
from .models.approval import CHANGE, REVIEWING
from .permissions import has_staff_permission


def may_not_decide(actor: User, approval: Approval) -> str:
    """Why this person may not answer it, in words; empty when she may."""
    for_others = reviews(actor, approval)
    own = approval.conversation.owner_id == actor.pk
    if not (own or for_others):
        return _("You may see this call, but not decide on it.")
    if approval.requester_may_not_decide and approval.requested_by_id == actor.pk:
        return _("The rule that asks wants somebody else than the person the agent works for.")
    if approval.reviewers_only and not for_others:
        return _("The rule that asks wants a reviewer of the organisation.")
    return ""


def reviews(actor: User, approval: Approval) -> bool:
    """Whether she decides for others where it was asked."""
    if has_staff_permission(actor, CHANGE):
        return True
    role = Membership.objects.filter(
        organisation_id=approval.organisation_id, user=actor
    ).values_list("role", flat=True)
    return any(Role(one) in REVIEWING for one in role)


def conditions_met(approval: Approval, people: Sequence[User]) -> tuple[Condition, ...]:
    """Those that hold for an approval which all of these people have allowed, asked for or not."""
    held: dict[Condition, bool] = {
        "two_people": len({person.pk for person in people}) > 1,
        "reviewers_only": all(reviews(person, approval) for person in people),
        "requester_may_not_decide": approval.requested_by_id not in {p.pk for p in people},
    }
    return tuple(name for name, holds in held.items() if holds)
