"""Whose conversation an address names."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Conversation, Event
from harness.errors import NotFound
from jobs.prepared import Prepared

_SHOWN = Prepared(
    lambda given: (
        Conversation.objects.visible_to(given.user).with_what_a_page_shows().filter(uid=given.uid)
    )
)


def find_conversation(user: User, uid: str) -> Conversation:
    """The person's conversation with what its pages show of it; NotFound for anybody else's."""
    found = _SHOWN.first(user=user.pk, uid=uid)
    if found is None:
        raise NotFound(_("There is no such conversation."))
    return found


def find_event(user: User, uid: str) -> Event:
    """An event of a conversation that she may read, with that; NotFound for any other."""
    mine = Conversation.objects.visible_to(user)
    rows = Event.objects.filter(conversation__in=mine, uid=uid).select_related("conversation")
    event = rows.first()
    if event is None:
        raise NotFound(_("There is no such event."))
    return event
