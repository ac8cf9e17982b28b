"""Who may answer an approval.

Which approvals a person sees is `Approval.objects.visible_to`; answering is `actions.approvals`, and
whose consent counts `consents`.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Membership, Role, User
from accounts.persons import persons_behind
from accounts.reviewing import REVIEWING
from accounts.staff import has_staff_permission
from conversations.models import Conversation

from .models import Approval
from .models.approval import CHANGE


def may_not_decide(actor: User, approval: Approval) -> str:
    """Why this person may not answer it, in words; empty when she may."""
    for_others = reviews(actor, approval)
    if not (for_others or _decides_there(actor, approval.conversation)):
        return _("You may see this call, but not decide on it.")
    if actor.is_service and approval.wants_people and actor.uid not in approval.service_accounts:
        return _("The rule that asks wants people, and names no such service account.")
    if approval.requester_may_not_decide and (why := _is_requester(actor, approval)):
        return why
    if approval.reviewers_only and not for_others:
        return _("The rule that asks wants a reviewer of the organisation.")
    return ""


def may_be_asked(user: User, approval: Approval) -> bool:
    """Whether it may be handed to her: she still belongs here, and could answer it."""
    belongs = Membership.objects.filter(organisation_id=approval.organisation_id, user=user)
    return (
        user.is_active
        and not user.is_service
        and not may_not_decide(user, approval)
        and (belongs.exists() or has_staff_permission(user, CHANGE))
    )


def reviews(actor: User, approval: Approval) -> bool:
    """Whether she decides for others where it was asked."""
    if has_staff_permission(actor, CHANGE):
        return True
    role = Membership.objects.filter(
        organisation_id=approval.organisation_id, user=actor
    ).values_list("role", flat=True)
    return any(Role(one) in REVIEWING for one in role)


def may_answer_now(account: User, approval: Approval) -> bool:
    """Whether this account, as it is now, could still give the answer that it gave before."""
    seen = Approval.objects.visible_to(account).filter(pk=approval.pk)
    return seen.exists() and not may_not_decide(account, approval)


def _decides_there(actor: User, conversation: Conversation) -> bool:
    if conversation.owner_id == actor.pk:
        return True
    return Conversation.objects.decidable_by(actor).filter(pk=conversation.pk).exists()


def _is_requester(actor: User, approval: Approval) -> str:
    """In what way she is the person the agent works for, or wrote to its agent; empty when she is not."""
    if actor.pk == approval.requested_by_id:
        return _("The rule that asks wants somebody else than the person the agent works for.")
    others = list(approval.also_requested_by.all()) if approval.pk else []
    if actor in others:
        return _(
            "The rule that asks wants somebody else than those who wrote to the agent, here or beside it."
        )
    requesters = [approval.requested_by, *others]
    if not (actor.is_service or any(one.is_service for one in requesters)):
        return ""
    if persons_behind(actor) & {pk for one in requesters for pk in persons_behind(one)}:
        return _(
            "The rule that asks wants somebody else than who the agent works for, and a service"
            " account counts as everybody who manages it or made a token for it."
        )
    return ""
