"""The panel above a conversation's composer: how many of its calls wait, and for whom.

It names each call that the owner may answer as its card shows it, so that one act can answer them all.
"""

from __future__ import annotations

from django.template.loader import render_to_string

from conversations.models import Conversation
from jobs.prepared import Prepared

from .models import Approval

_PENDING = Prepared(
    lambda given: Approval.objects.filter(
        conversation=given.conversation, state=Approval.State.PENDING
    ).values_list("pk")
)


def draw_waiting(conversation: Conversation) -> str:
    """Empty where nothing waits, which is told by one short query."""
    if not _PENDING.exists(conversation=conversation.pk):
        return ""
    of_here = Approval.objects.filter(conversation=conversation.pk)
    mine = Approval.objects.decidable_by(conversation.owner).filter(conversation=conversation.pk)
    calls = list(mine.order_by("pk"))
    context = {"calls": calls, "others": of_here.waiting().count() - len(calls)}
    return render_to_string("approvals/_waiting.html", context).strip()
