"""The first step of every action on a conversation: is it the actor's, and, where something is to happen in
it, is it still open?"""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Conversation
from harness.errors import Conflict, NotFound
from jobs.prepared import Prepared

_HELD = Prepared(
    lambda given: (
        Conversation.objects.visible_to(given.user)
        .select_for_update(of=("self",), no_key=True)
        .filter(pk=given.pk)
    )
)


def own_conversation(actor: User, conversation: Conversation) -> Conversation:
    """The row as it is now, locked; NotFound unless it is the actor's, Conflict if it has ended.

    Needs a transaction, which holds the lock.
    """
    held = _HELD.first(user=actor.pk, pk=conversation.pk)
    if held is None:
        raise NotFound(_("There is no such conversation."))
    if held.status == Conversation.Status.TERMINATED:
        raise Conflict(_("This conversation has ended."), hint=_("Begin a new one."))
    return held


def visible_conversation(
    actor: User, conversation: Conversation, *, lock: bool = False
) -> Conversation:
    """The row as it is now, also of one that has ended; NotFound unless it is the actor's."""
    visible = Conversation.objects.visible_to(actor).filter(pk=conversation.pk)
    found = (visible.select_for_update(of=("self",)) if lock else visible).first()
    if found is None:
        raise NotFound(_("There is no such conversation."))
    return found


def require_visible(actor: User, conversation: Conversation) -> None:
    """NotFound unless it is the actor's."""
    if not Conversation.objects.visible_to(actor).filter(pk=conversation.pk).exists():
        raise NotFound(_("There is no such conversation."))
