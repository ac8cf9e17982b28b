"""Approvals that wait, for the mails about what waits (`notices.waiting`): for whom, and where."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.urls import reverse

from accounts.models import Membership, User
from accounts.reviewing import REVIEWING
from notices.waiting import NEWS, Item, in_turn, is_reachable

from .models import Approval


def waiting(now: datetime) -> Iterator[tuple[Item, User]]:
    rows = (
        Approval.objects.waiting(now)
        .filter(asked_at__gt=now - NEWS, asked_at__lte=now - timedelta(minutes=1))
        .select_related("conversation__owner", "assignee")
    )
    for approval in in_turn(rows, whose="conversation__owner", since="asked_at"):
        conversation = approval.conversation
        for user in _audience(approval):
            path = (
                approval.get_absolute_url()
                if user == conversation.owner
                else reverse("approvals:approval", kwargs={"uid": approval.uid})
            )
            subject = f"{approval.call_uid}:{approval.round}"
            link = settings.AGENTSITE_BASE_URL + path
            yield (
                Item(
                    subject,
                    conversation,
                    approval.tool,
                    approval.asked_at,
                    link,
                    may_answer=True,
                    root_id=approval.root_id,
                    approval_uid=approval.uid,
                ),
                user,
            )


def _audience(approval: Approval) -> list[User]:
    """Whom it was handed to; else the owner if she may answer; else all who review."""
    if approval.assignee is not None:
        asked = [approval.assignee]
    elif approval.assignee_role:
        asked = _members(approval.organisation_id, [approval.assignee_role])
    else:
        asked = [approval.conversation.owner]
    may = [user for user in asked if is_reachable(user) and _may_decide(user, approval)]
    if may:
        return may
    # Who has agreed already, or may not decide, is not asked; then it is for the others.
    return [
        user
        for user in _members(approval.organisation_id, [str(role) for role in REVIEWING])
        if is_reachable(user) and _may_decide(user, approval)
    ]


def _members(organisation_id: int, roles: list[str]) -> list[User]:
    found = Membership.objects.filter(organisation=organisation_id, role__in=roles)
    return [membership.user for membership in found.select_related("user").order_by("pk")]


def _may_decide(user: User, approval: Approval) -> bool:
    return Approval.objects.decidable_by(user).filter(pk=approval.pk).exists()
