"""Whoever may write in a conversation pins messages and answers: they outlive summaries word for word.

An event of the log, as all that is done there; what is pinned now is read by `keeping.pinnedmessages`.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import writable_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from harness.errors import Conflict, LimitReached, NotFound, TooLarge
from harness.events import MessagePinned
from harness.history import Entry
from keeping.pinnedmessages import PINNABLE, said_in, wanted_in

MOST = 20
"""Of one conversation at a time."""
LENGTH = 8_000
"""Characters of one: what is pinned takes room of every prompt from the next summary on."""
MOST_CHANGES = 500
"""Of one conversation; all of them are read whenever it is drawn."""


def pin_message(
    *, actor: User, conversation: Conversation, event_uid: str, pinned: bool = True
) -> Event | None:
    """Pin it, or let go of it; None: it is so already.

    Raises NotFound, Forbidden, Conflict for what is no message, was taken out or stands on another branch,
    TooLarge, and LimitReached past `MOST` pins or `MOST_CHANGES`.
    """
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        log = Event.objects.filter(conversation=held)
        named = log.filter(uid=event_uid.replace("\0", "")).first()
        if named is None:
            raise NotFound(_("There is no such event."))
        wanted = wanted_in(held)
        if (named.subject in wanted) == pinned:
            return None
        if pinned:
            _require_pinnable(held, named, wanted)
        if log.filter(type="x.message_pinned").count() >= MOST_CHANGES:
            raise LimitReached(
                _("Messages of this conversation were pinned and let go of too often."),
                hint=_("What is pinned stays so."),
            )
        event = MessagePinned(event_id=named.subject, pinned=pinned)
        return append(held.pk, [Entry.of(event)], actor=actor)[0]


def _require_pinnable(held: Conversation, named: Event, wanted: set[str]) -> None:
    """What was taken out since or stands on a branch that was left is not counted: nobody sees it."""
    already = said_in(held, wanted | {named.subject})
    said = already.pop(named.subject, None)
    if named.type not in PINNABLE or said is None or not said.text.strip():
        raise Conflict(
            _("There is nothing said here that could be pinned."),
            hint=_("Name a message or an answer of the branch that you see."),
        )
    if len(said.text) > LENGTH:
        raise TooLarge(
            _("It is longer than %(most)d characters.") % {"most": LENGTH},
            field="event_id",
            hint=_("Say the part that matters in a message, and pin that."),
        )
    if len(already) >= MOST:
        raise LimitReached(
            _("%(most)d messages of this conversation are pinned already.") % {"most": MOST},
            hint=_("Let go of one first."),
        )
