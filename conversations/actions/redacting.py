"""Take out of the log what a message or an answer said, or what a call brought.

It stands nowhere that this server reads any more: page, prompts, doors, search, exports, links, traces.
What was made of it before stays: forks, files, what the agent wrote down elsewhere. Where a service
refuses content, it is set aside instead (`actions.setaside`), which keeps it.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting
from conversations.actions.own import own_even_ended
from conversations.log import redact
from conversations.models import Conversation, Event, Link, ModelTrace, Run
from conversations.models.event import EventQuerySet
from harness.content import text_of
from harness.errors import Conflict, NotFound
from harness.events import ANSWERS, CALLS, UserMessage

from .messages import title_from

SAID = ("user.message", "agent.message")


def redact_content(*, actor: User, conversation: Conversation, event_uid: str) -> Event:
    """Remove what the message, the answer, or the result of the call with this id says, for good.

    Asked for twice it is the same event. A title that was made of the message goes as well, and so do traces
    of requests. Raises NotFound; Forbidden for who only shares the conversation; Conflict while a run is
    under way, for a message that still waits, and for what is none of these.
    """
    with transaction.atomic():
        held = own_even_ended(actor, conversation, lock=True)
        named = Event.objects.filter(conversation=held, uid=event_uid.replace("\0", "")).first()
        if named is None:
            raise NotFound(_("There is no such event."))
        about = Event.objects.filter(conversation=held, subject=named.subject)
        done = about.filter(type="x.content_redacted").first()
        if done is not None:
            return done
        _require_redactable(named, about)
        if Run.objects.filter(conversation=held, state=Run.State.RUNNING).exists():
            raise Conflict(
                _("The agent is at work with it right now."), hint=_("Wait, or stop it first.")
            )
        title = _title_made_of(held, about)
        row = redact(held, named.subject, actor=actor, title=title)
        Link.objects.filter(conversation=held, title=title).update(title="")
        ModelTrace.objects.filter(conversation=held).delete()
        about_setting(
            AuditEntry.Action.CONTENT_REDACTED,
            actor=actor,
            organisation_id=held.organisation_id,
            conversation_uid=held.uid,
            event=named.subject,
        )
    return row


def is_redacted(conversation: Conversation, event: Event) -> bool:
    """Whether what stood at this event was taken out before."""
    about = Event.objects.filter(conversation=conversation, subject=event.subject)
    return about.filter(type="x.content_redacted").exists()


def _require_redactable(named: Event, about: EventQuerySet) -> None:
    if named.type in CALLS and not about.filter(type__in=ANSWERS).exists():
        raise Conflict(_("This call has no result yet."), hint=_("Answer it, or stop the turn."))
    if named.type not in {*SAID, *CALLS, *ANSWERS}:
        raise Conflict(
            _("Nothing is said there that could be removed."),
            hint=_("Name a message, an answer, or a call with its result."),
        )
    first = about.filter(uid=named.subject).first()
    if first is None or first.type != "user.message" or first.processed_at is not None:
        return
    raise Conflict(_("This message still waits."), hint=_("Withdraw it first."))


def _title_made_of(held: Conversation, about: EventQuerySet) -> str:
    """The title, where it is the message's first words."""
    values = [row.value for row in about]
    texts = [text_of(value.content) for value in values if isinstance(value, UserMessage)]
    return held.title if held.title and held.title in map(title_from, texts) else ""
