"""A person has seen what a conversation says: up to where, for her alone."""

from __future__ import annotations

from accounts.models import User
from conversations.actions.own import readable_conversation
from conversations.models import Conversation
from keeping.models import SeenMark


def mark_as_seen(*, actor: User, conversation: Conversation, seq: int | None = None) -> int:
    """Up to event `seq`, or all there is by now; up to where that is.

    Never less than before, nor more than there is. Raises NotFound unless she may read it. Waits for nobody
    who appends: the conversation's row is not locked.
    """
    conversation = readable_conversation(actor, conversation)
    upto = conversation.last_seq if seq is None else min(seq, conversation.last_seq)
    hers = SeenMark.objects.filter(user=actor, conversation=conversation)
    known = hers.values_list("seq", flat=True).first()
    if known is not None and known >= upto:
        return known
    if known is None:
        mark = SeenMark(user=actor, conversation=conversation, seq=upto)
        SeenMark.objects.bulk_create([mark], ignore_conflicts=True)
    # Another tab may have marked more in between, or less.
    hers.filter(seq__lt=upto).update(seq=upto)
    return hers.values_list("seq", flat=True).get()
