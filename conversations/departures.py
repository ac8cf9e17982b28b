"""What becomes of the agents of a person who left: they come to rest and stay there.

`accounts` names the job when a member is removed. It is a hint that may be lost, or come while something
begins: whatever works for a person looks again, by `Conversation.objects.of_members`, a run when it
renews its lease.
"""

from __future__ import annotations

from django.db import transaction

from accounts.models import Membership
from harness.events import UserInterrupt
from harness.history import Entry
from jobs.prepared import Prepared

from . import delays
from .background import ask_for_end, end_here
from .log import append
from .models import BackgroundCommand, Conversation, Event
from .sandboxing import end_shells
from .wakes import wake

_MEMBER = Prepared(
    lambda given: Membership.objects.filter(
        organisation=given.organisation, user=given.user
    ).values_list("pk")
)

_OF_MEMBER = Prepared(
    lambda given: Conversation.objects.of_members().filter(pk=given.pk).values_list("pk")
)

STOP = "conversations.stop_of_member"


def has_left(conversation: Conversation) -> bool:
    """Whether nobody is there any more for whom an agent might work."""
    return not _OF_MEMBER.exists(pk=conversation.pk)


def is_member(user_id: int, organisation_id: int) -> bool:
    return _MEMBER.exists(organisation=organisation_id, user=user_id)


def interrupt_if_left(conversation_id: int) -> None:
    """Interrupt what is at work for a person who left, where nobody has: the job may have been lost."""
    if _OF_MEMBER.exists(pk=conversation_id):
        return
    with transaction.atomic():
        rows = Conversation.objects.interruptible().select_for_update(of=("self",), no_key=True)
        held = rows.filter(pk=conversation_id).first()
        if held is None or Event.objects.waiting_interrupts(conversation_id).exists():
            return
        append(conversation_id, [Entry.of(UserInterrupt())])


def stop_of_member(user_id: int, organisation_id: int) -> None:
    """Interrupt what a former member's agents do in the organisation or have handed to workers, cancel
    what they planned, and end what they left running."""
    theirs = Conversation.objects.filter(owner_id=user_id, organisation_id=organisation_id)
    for conversation in theirs.interruptible():
        with transaction.atomic():
            append(conversation.pk, [Entry.of(UserInterrupt())])
            wake(conversation.pk)
    for conversation in theirs.filter(wakes__state="waiting").distinct():
        delays.cancel(conversation)
    running = BackgroundCommand.objects.running().filter(conversation__in=theirs)
    for conversation_id, uid in running.values_list("conversation", "uid"):
        end_here(ask_for_end(conversation_id, uid))
    end_shells(list(theirs.values_list("uid", flat=True)))
