"""Go on without what a model service refuses: a message that was taken, or what a call was answered.

It stays in the log and on the page with its text; prompts leave it out (`harness.transcript`). What
still waits is withdrawn instead (`actions.messages`). What may be meant is `harness.refused`'s guess;
a person may name anything else.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import own_conversation
from conversations.branches import counting
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.wakes import wake
from harness.errors import Conflict, NotFound
from harness.events import ANSWERS, CALLS, ContentSetAside, SessionError
from harness.history import Entry


def set_aside(*, actor: User, conversation: Conversation, event_uid: str) -> Event:
    """Leave a message, or the result of a call, out of every prompt from now on.

    `event_uid` is the message's, the call's or the result's. What waited because of the failure goes
    on. Set aside twice it is the same event. Raises NotFound; Conflict while the conversation works,
    where nothing has failed, and for a message that still waits or a call without a result.
    """
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        target = _target(held, event_uid)
        about = Event.objects.filter(conversation=held, subject=target)
        before = about.filter(type=ContentSetAside.model_fields["type"].default).first()
        if before is not None:
            return before
        _require_in_dialogue(about, target)
        _require_failed(held)
        event = ContentSetAside(event_id=target, reason=_reason(held))
        row = append(held.pk, [Entry.of(event)], actor=actor)[0]
        wake(held.pk)
    return row


def _target(held: Conversation, event_uid: str) -> str:
    """The id of the message or the call."""
    named = Event.objects.filter(conversation=held, uid=event_uid.replace("\0", "")).first()
    if named is None:
        raise NotFound(_("There is no such event."))
    return named.subject if named.type in ANSWERS else named.uid


def _require_in_dialogue(about: QuerySet[Event], target: str) -> None:
    first = about.filter(uid=target).first()
    if first is not None and first.type == "user.message":
        if about.filter(type="x.message_withdrawn").exists():
            raise NotFound(_("This message was withdrawn."))
        if first.processed_at is None:
            raise Conflict(_("This message still waits."), hint=_("Withdraw it instead."))
        return
    if first is None or first.type not in CALLS:
        raise Conflict(
            _("This cannot be set aside."), hint=_("Name a message, or a call and its result.")
        )
    if not about.filter(type__in=ANSWERS).exists():
        raise Conflict(_("This call has no result yet."), hint=_("Answer it, or stop the turn."))


def _require_failed(held: Conversation) -> None:
    if held.is_running or held.waits_for_person or held.waits_for_worker:
        raise Conflict(_("The conversation is not at rest."), hint=_("Wait, or stop it first."))
    if held.stop_reason != "retries_exhausted":
        raise Conflict(
            _("Nothing has failed here."),
            hint=_("Messages are set aside when a model service refuses them."),
        )


def _reason(held: Conversation) -> str:
    errors = counting(held).filter(type="session.error").order_by("-seq")
    value = last.value if (last := errors.first()) is not None else None
    return value.error.message if isinstance(value, SessionError) else ""
