"""Take out of the log what a message or an answer said, or what a call brought.

It stands nowhere that this server reads any more: page, prompts, doors, search, exports, links, traces, nor
where apps copied it, be it to another log (`conversations.forgetting`). What was made of it stays: forks,
files, what the agent wrote down elsewhere. Where a service refuses content, it is set aside instead
(`actions.setaside`), which keeps it.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting
from conversations.actions.own import own_even_ended
from conversations.ancestry import ancestors
from conversations.forgetting import Place
from conversations.log import redact
from conversations.models import Conversation, Event, Run
from conversations.models.event import EventQuerySet
from harness.content import text_of
from harness.errors import Conflict, NotFound
from harness.events import ANSWERS, CALLS, MessageEdited, UserDefineOutcome, UserMessage

from .messages import title_from

SAID = (
    "user.message",
    "agent.message",
    "agent.thinking",
    "user.define_outcome",
    "span.outcome_evaluation_end",
    "x.outcome_check_ran",
    "x.background_finished",
    "x.compaction_requested",
    "x.mcp_elsewhere",
    "x.session_memory_written",
)
_WAITS = (
    "user.message",
    "user.define_outcome",
    "x.background_finished",
    "x.compaction_requested",
)


def redact_content(*, actor: User, conversation: Conversation, event_uid: str) -> Event:
    """Remove what the message, the answer, the thought, the outcome or the judgement of one, the wish for a
    summary, or the result of the call with this id says, for good.

    Thoughts go with their answer, judgements with their outcome, and each can be named by itself. Asked for
    twice it is the same event. Titles that were made of the message go as well, and so do traces of requests.
    Where logs of other conversations repeat it, it is taken out of them as well.

    Raises NotFound; Forbidden for who only shares the conversation; Conflict while a run is under way there
    or in one of those others, for what still waits, and for what is none of these.
    """
    with transaction.atomic():
        held = _hold(actor, conversation)
        named = Event.objects.filter(conversation=held, uid=event_uid.replace("\0", "")).first()
        if named is None:
            raise NotFound(_("There is no such event."))
        about = Event.objects.filter(conversation=held, subject=named.subject)
        done = about.filter(type="x.content_redacted").first()
        if done is not None:
            return done
        _require_redactable(named, about)
        return _take_out(actor, held, named.subject)


def _hold(actor: User, conversation: Conversation) -> Conversation:
    """Those above as well, and first: everybody locks in that order."""
    own_even_ended(actor, conversation)
    for pk in reversed(ancestors(conversation)):
        Conversation.objects.select_for_update(no_key=True).filter(pk=pk).first()
    return own_even_ended(actor, conversation, lock=True)


def _take_out(actor: User, held: Conversation, subject: str) -> Event:
    row, places = _redact(actor, held, subject)
    while places:
        other, same = places.pop()
        found = Conversation.objects.select_for_update(no_key=True).filter(pk=other.pk).first()
        about = Event.objects.filter(conversation=other, subject=same)
        if found is not None and not about.filter(type="x.content_redacted").exists():
            places += _redact(actor, found, same)[1]
    return row


def _redact(actor: User, held: Conversation, subject: str) -> tuple[Event, list[Place]]:
    if Run.objects.filter(conversation=held, state=Run.State.RUNNING).exists():
        raise Conflict(
            _("The agent is at work with it right now."), hint=_("Wait, or stop it first.")
        )
    about = Event.objects.filter(conversation=held, subject=subject)
    titles = _titles_made_of(about) | _titles_said_of(held, subject)
    done = redact(held, subject, actor=actor, titles=titles)
    about_setting(
        AuditEntry.Action.CONTENT_REDACTED,
        actor=actor,
        organisation_id=held.organisation_id,
        conversation_uid=held.uid,
        event=subject,
    )
    return done


def is_redacted(conversation: Conversation, event: Event) -> bool:
    """Whether what stood at this event was taken out before."""
    about = Event.objects.filter(conversation=conversation, subject=event.subject)
    return about.filter(type="x.content_redacted").exists()


def _require_redactable(named: Event, about: EventQuerySet) -> None:
    if named.type in CALLS and not about.filter(type__in=ANSWERS).exists():
        raise Conflict(_("This call has no result yet."), hint=_("Answer it, or stop the turn."))
    if not {named.type, *about.values_list("type", flat=True)} & {*SAID, *CALLS, *ANSWERS}:
        raise Conflict(
            _("Nothing is said there that could be removed."),
            hint=_("Name a message, an answer, or a call with its result."),
        )
    first = about.filter(uid=named.subject).first()
    if first is None or first.type not in _WAITS or first.processed_at is not None:
        return
    if first.type == "x.background_finished":
        raise Conflict(_("This still waits."), hint=_("Wait until the agent was told of it."))
    if first.type == "x.compaction_requested":
        raise Conflict(_("This still waits."), hint=_("Wait until it is done."))
    raise Conflict(_("This message still waits."), hint=_("Withdraw it first."))


def _titles_made_of(about: EventQuerySet) -> set[str]:
    """What a conversation is called after the first words of these."""
    texts: list[str] = []
    for row in about:
        match row.value:
            case UserMessage(content=content) | MessageEdited(content=content):
                # Of a message alone, or with all that was put behind it.
                texts += [text_of(content), text_of(content[:1])]
            case UserDefineOutcome(description=description):
                texts.append(description)
            case _:
                pass
    return set(map(title_from, texts)) - {""}


def _titles_said_of(conversation: Conversation, subject: str) -> set[str]:
    """What a model called it after these."""
    updates = Event.objects.filter(conversation=conversation, type="session.updated")
    given = updates.filter(payload__made_of=subject).values_list("payload__title", flat=True)
    return set(given) - {"", None}
