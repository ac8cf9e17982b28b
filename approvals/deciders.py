"""Who may answer an approval.

Which approvals a person sees is `Approval.objects.visible_to`; answering is `actions.approvals`, and
whose consent counts `consents`.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from accounts.models import Membership, Role, User
from accounts.persons import persons_behind
from accounts.reviewing import REVIEWING
from accounts.staff import has_staff_permission
from conversations.models import Conversation

from .models import Approval
from .models.approval import CHANGE
from .requesters import writing


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


def may_not_allow(actor: User, approval: Approval, chosen: str) -> str:
    """Why this person, who may answer it, may not let it run with the input of this hash; empty when she may.

    Who puts other arguments in the place of the agent's has written that call: where its requester may not
    decide on it, she proposes them and somebody else allows them. She may still deny it, or allow another.
    """
    if not approval.requester_may_not_decide:
        return ""
    writers = list(User.objects.filter(pk__in=writing(approval, chosen)))
    if actor in writers or _speaks_for(actor, writers):
        return _("You changed what this call would run with, so somebody else must allow that.")
    return ""


def may_be_asked(user: User, approval: Approval) -> bool:
    """Whether it may be handed to her: she still belongs here, and could answer it."""
    belongs = Membership.objects.filter(organisation_id=approval.organisation_id, user=user)
    return (
        user.is_active
        and not user.is_service
        and not may_not_answer(user, approval)
        and (belongs.exists() or has_staff_permission(user, CHANGE))
    )


def may_not_answer(user: User, approval: Approval) -> str:
    """Why she could not answer it in each way as it is put now; empty when she could."""
    return may_not_decide(user, approval) or may_not_allow(
        user, approval, approval.effective_sha256
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
    if _speaks_for(actor, [approval.requested_by, *others]):
        return _(
            "The rule that asks wants somebody else than who the agent works for, and a service"
            " account counts as everybody who manages it or made a token for it."
        )
    return ""


def _speaks_for(actor: User, others: Sequence[User]) -> bool:
    """Whether a person who stands behind the account stands behind one of the others, too, of which one at
    least is a service account."""
    if not (actor.is_service or any(one.is_service for one in others)):
        return False
    return bool(persons_behind(actor) & {pk for one in others for pk in persons_behind(one)})
