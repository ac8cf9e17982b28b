"""Asking that the older part of a conversation be summarised, with what the summary is to dwell on.

Doing it is a run's part; what a summary keeps, `harness`'s.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import writable_conversation
from conversations.askers import keep_asker
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.ratelimits import count_message
from conversations.wakes import wake
from harness.errors import Conflict, Invalid
from harness.events import CompactionRequested
from harness.history import Entry

FOCUS_LENGTH = 1_000


def request_compaction(*, actor: User, conversation: Conversation, focus: str = "") -> Event:
    """Have a run summarise older messages at its next free moment. The log keeps all of them.

    It counts as a message in what a person may send, and at rest she pays for it; a turn that is under way or
    waits stays at the charge of whom it is for. Raises NotFound, Forbidden, Conflict where messages
    are held back or it was asked for already, Invalid for a focus that is too long, and TooMany.
    """
    focus = " ".join(focus.split())
    if len(focus) > FOCUS_LENGTH:
        raise Invalid(
            _("What to dwell on has more than %(limit)d characters.") % {"limit": FOCUS_LENGTH},
            field="focus",
        )
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        if held.holds_queue:
            raise Conflict(
                _("Messages are held back."), hint=_("Say first what is to become of them.")
            )
        waiting = Event.objects.filter(
            conversation=held, type="x.compaction_requested", processed_at=None
        )
        if waiting.exists():
            raise Conflict(
                _("Older messages are to be summarised already."), hint=_("Wait until it is done.")
            )
        count_message(actor)
        rests = (held.status, held.stop_reason) == (Conversation.Status.IDLE, "end_turn")
        if rests and actor.pk != held.asker_id:
            keep_asker(held, actor.pk)
        row = append(held.pk, [Entry.of(CompactionRequested(focus=focus))], actor=actor)[0]
        wake(held.pk)
        return row
