"""What becomes of the agents of a person who left: they come to rest and stay there.

`accounts` names the job when a member is removed; a run looks again before it does anything, because
a hint may be lost.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from accounts.models import Membership
from harness.events import UserInterrupt
from harness.history import Entry
from jobs.prepared import Prepared

from . import delays
from .log import append
from .models import Conversation
from .wakes import wake

_MEMBER = Prepared(
    lambda given: Membership.objects.filter(
        organisation=given.organisation, user=given.user
    ).values_list("pk")
)

STOP = "conversations.stop_of_member"


def has_left(conversation: Conversation) -> bool:
    """Whether nobody is there any more for whom an agent might work."""
    return not (
        conversation.owner.is_active
        and is_member(conversation.owner_id, conversation.organisation_id)
    )


def is_member(user_id: int, organisation_id: int) -> bool:
    return _MEMBER.exists(organisation=organisation_id, user=user_id)


def stop_of_member(user_id: int, organisation_id: int) -> None:
    """Interrupt what a former member's agents do in the organisation, and cancel what they planned."""
    working = Q(status__in=[Conversation.Status.RUNNING, Conversation.Status.RESCHEDULING])
    theirs = Conversation.objects.filter(owner_id=user_id, organisation_id=organisation_id)
    for conversation in theirs.filter(working | Q(queued_count__gt=0)):
        with transaction.atomic():
            append(conversation.pk, [Entry.of(UserInterrupt())])
            wake(conversation.pk)
    for conversation in theirs.filter(wakes__state="waiting").distinct():
        delays.cancel(conversation)
