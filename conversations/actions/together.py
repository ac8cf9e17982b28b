"""Several waiting calls of a conversation answered by one act of its owner.

Each goes the way of a single answer (`deciding.decide_call`), all in one transaction. What an answer
takes is decided there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.answering import MOST_TOGETHER
from conversations.actions.deciding import decide_call
from conversations.actions.messages import withdraw_message
from conversations.actions.own import decidable_conversation
from conversations.broughtwords import bring_words
from conversations.models import Conversation, Event
from harness.content import Text, text_of
from harness.errors import AlreadyDecided, Conflict, Expired, Invalid, NotWaiting
from harness.events import MessageEdited, UserMessage


@dataclass(frozen=True, slots=True)
class Shown:
    """A waiting call as a page showed it."""

    call_uid: str
    input_hash: str
    round: int


def allow_calls(*, actor: User, conversation: Conversation, shown: Sequence[Shown]) -> Event:
    """Allow these calls, each exactly as it was shown, or none of them; the last of the events.

    Raises what `decide_call` raises, and Invalid for none, too many, or one that nobody was shown.
    """
    _require_some(shown)
    if not all(one.input_hash for one in shown):
        raise Invalid(
            _("A call that was not shown cannot be allowed."),
            field="calls",
            hint=_("Load the page again and look at the calls."),
        )
    with transaction.atomic():
        return [
            decide_call(
                actor=actor,
                conversation=conversation,
                call_uid=one.call_uid,
                allow=True,
                shown=one.input_hash,
                seen_round=one.round,
            )
            for one in shown
        ][-1]


def deny_calls(
    *, actor: User, conversation: Conversation, call_uids: Sequence[str], reason: str
) -> Event:
    """Deny those of these calls that still wait, for one reason that the agent reads; the last event.

    Raises what `decide_call` raises, but for calls that are decided already only where none waits.
    """
    _require_some(call_uids)
    denied: list[Event] = []
    late: AlreadyDecided | NotWaiting | Expired | None = None
    with transaction.atomic():
        for call_uid in call_uids:
            try:
                with transaction.atomic():
                    event = decide_call(
                        actor=actor,
                        conversation=conversation,
                        call_uid=call_uid,
                        allow=False,
                        reason=reason,
                    )
                denied.append(event)
            except (AlreadyDecided, NotWaiting, Expired) as problem:
                late = problem
        if not denied and late is not None:
            raise late
    return denied[-1]


def deny_with_message(
    *, actor: User, conversation: Conversation, call_uids: Sequence[str], message_uid: str
) -> Event:
    """Deny these calls with what a message says that still waits, which leaves the queue by that. Whoever
    else wrote it is named among those on whose words the agent acts.

    Raises as `deny_calls` and `withdraw_message`, and Invalid for a message that brings files and for one
    that is no person's own words.
    """
    with transaction.atomic():
        held = decidable_conversation(actor, conversation)
        withdraw_message(actor=actor, conversation=held, message_uid=message_uid)
        reason = _words_of(held, message_uid)
        author = Event.objects.values_list("actor", flat=True).get(
            conversation=held, uid=message_uid
        )
        if author not in {None, actor.pk}:
            bring_words(held, [author], way="answer")
        return deny_calls(actor=actor, conversation=held, call_uids=call_uids, reason=reason)


def _words_of(held: Conversation, message_uid: str) -> str:
    """What a message says, as it was changed last."""
    about = Event.objects.filter(conversation=held, subject=message_uid)
    said = [one.value for one in about.order_by("seq")]
    messages = [one for one in said if isinstance(one, UserMessage)]
    if any(one.by_agent or one.untrusted_by for one in messages):
        raise Invalid(
            _("What an agent or a stranger wrote is no reason to give."),
            field="message",
            hint=_("Write the reason as text."),
        )
    content = [one.content for one in said if isinstance(one, UserMessage | MessageEdited)][-1]
    files = any(isinstance(one, UserMessage) and one.files for one in said)
    if files or not all(isinstance(block, Text) for block in content):
        raise Invalid(
            _("A message with pictures or files is no reason to give."),
            field="message",
            hint=_("Write the reason as text."),
        )
    return text_of(content)


def _require_some(calls: Sequence[object]) -> None:
    if not calls:
        raise Invalid(_("No call is chosen."), field="calls", hint=_("Choose at least one."))
    if len(calls) > MOST_TOGETHER:
        raise Conflict(
            _("More than %(limit)d calls are chosen.") % {"limit": MOST_TOGETHER},
            hint=_("Decide on fewer at a time."),
        )
