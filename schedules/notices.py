"""Calls of runs that wait for an answer, for the mails about what waits: the approvers of an order are
told as its owner is (`approvals.notices`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.urls import reverse

from accounts.models import User
from approvals.models import Approval
from notices.waiting import NEWS, Item, in_turn, is_reachable

from .models import OrderRun


def waiting(now: datetime) -> Iterator[tuple[Item, User]]:
    runs = OrderRun.objects.open().exclude(order__approvers=None)
    by_conversation = {
        run.conversation_id: run for run in in_turn(runs, whose="order__owner", since="pk")
    }
    asked = (
        Approval.objects.waiting(now)
        .filter(
            root__in=by_conversation,
            asked_at__gt=now - NEWS,
            asked_at__lte=now - timedelta(minutes=1),
        )
        .select_related("conversation")
    )
    for approval in in_turn(asked, whose="conversation__owner", since="asked_at"):
        may = Approval.objects.filter(pk=approval.pk)
        for user in by_conversation[approval.root_id].order.approvers.all():
            if is_reachable(user) and may.decidable_by(user).exists():
                path = reverse("approvals:approval", kwargs={"uid": approval.uid})
                item = Item(
                    f"{approval.call_uid}:{approval.round}",
                    approval.conversation,
                    approval.tool,
                    approval.asked_at,
                    settings.AGENTSITE_BASE_URL + path,
                    may_answer=True,
                    root_id=approval.root_id,
                    approval_uid=approval.uid,
                )
                yield item, user
