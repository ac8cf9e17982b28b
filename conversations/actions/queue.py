"""What becomes of messages that are held back after a stop, a failure or a limit: all go on, or none."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import own_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.wakes import wake
from harness.errors import Conflict
from harness.events import MessageWithdrawn, QueueReleased
from harness.history import Entry


def release_queue(*, actor: User, conversation: Conversation) -> Event:
    """Let the agent take what waits, one after another. Raises NotFound, and Conflict where nothing is
    held back."""
    with transaction.atomic():
        held = _held(actor, conversation)
        row = append(held.pk, [Entry.of(QueueReleased())], actor=actor)[0]
        wake(held.pk)
        return row


def discard_queue(*, actor: User, conversation: Conversation) -> Event:
    """Withdraw all that is held back. Raises as `release_queue`."""
    with transaction.atomic():
        held = _held(actor, conversation)
        waiting = Event.objects.filter(
            conversation=held, type="user.message", processed_at=None
        ).order_by("seq")
        gone = [
            Entry.of(MessageWithdrawn(event_id=uid))
            for uid in waiting.values_list("uid", flat=True)
        ]
        return append(held.pk, gone, actor=actor)[-1]


def _held(actor: User, conversation: Conversation) -> Conversation:
    held = own_conversation(actor, conversation)
    if not held.holds_queue:
        raise Conflict(
            _("No message is held back."), hint=_("The agent takes what waits by itself.")
        )
    return held
