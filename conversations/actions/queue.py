"""The queue as a whole: in which order messages wait, and what becomes of those that are held back after a
stop, a failure or a limit. One message is changed by `actions.messages`."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import own_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.waiting import waiting_in_order
from conversations.wakes import wake
from harness.errors import Conflict
from harness.events import MessageWithdrawn, QueueOrdered, QueueReleased
from harness.history import Entry


def move_message(
    *, actor: User, conversation: Conversation, message_uid: str, before_uid: str = ""
) -> Event | None:
    """Have a waiting message taken right before another one, or without one behind all; None where it is
    so already. Raises NotFound, and Conflict where one of them does not wait any more."""
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        order = waiting_in_order(held.pk)
        if message_uid not in order or (before_uid and before_uid not in order):
            raise Conflict(
                _("This message no longer waits."), hint=_("Look at what waits now, and try again.")
            )
        moved = [uid for uid in order if uid != message_uid]
        if before_uid == message_uid:
            return None
        moved.insert(moved.index(before_uid) if before_uid else len(moved), message_uid)
        if moved == order:
            return None
        return append(held.pk, [Entry.of(QueueOrdered(event_ids=tuple(moved)))], actor=actor)[0]


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
        gone = [Entry.of(MessageWithdrawn(event_id=uid)) for uid in waiting_in_order(held.pk)]
        return append(held.pk, gone, actor=actor)[-1]


def _held(actor: User, conversation: Conversation) -> Conversation:
    held = own_conversation(actor, conversation)
    if not held.holds_queue:
        raise Conflict(
            _("No message is held back."), hint=_("The agent takes what waits by itself.")
        )
    return held
