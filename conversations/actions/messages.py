"""What people say and decide in a conversation: post, stop, withdraw, retry, allow, deny, switch.

Each call checks that the conversation is the actor's, appends one event and wakes the conversation.
Nothing is carried out here.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.persons import whose_place
from conversations import delays
from conversations.actions.answers import set_questions_aside
from conversations.actions.attachments import attached
from conversations.actions.frontends import check_front_end
from conversations.actions.media import check_media
from conversations.actions.own import own_conversation, require_writable, writable_conversation
from conversations.actions.stored_files import delete_file
from conversations.log import SENT_BEFORE, append
from conversations.models import Conversation, Event
from conversations.ratelimits import count_message, require_room
from conversations.retrying import may_retry
from conversations.wakes import wake
from harness.agentconfig import Features
from harness.content import Block, Text, text_of
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, TooLarge
from harness.events import Event as EventValue
from harness.events import (
    MessageEdited,
    MessageSteered,
    MessageWithdrawn,
    QueueHeld,
    RetryRequested,
    SessionUpdated,
    UserInterrupt,
    UserMessage,
)
from harness.frontends import FrontEnd
from harness.history import Entry
from reading.wholetext import mended

TITLE_LENGTH = 100
"""Characters of the first message that become the title."""
MOST_EDITS = 30
"""Of one message while it waits; all of them are read whenever it is drawn."""
KEY_LIMIT = 100


def post_message(
    *,
    actor: User,
    conversation: Conversation,
    text: str,
    key: str | None = None,
    interrupt: bool = False,
    attachments: Sequence[Block] = (),
    front_end: FrontEnd | None = None,
    files: Sequence[str] = (),
    untrusted_by: str = "",
) -> Event:
    """Queue a message; a run takes it when its turn comes. `attachments`, images and documents,
    follow its text, which may then be empty. So do `files`, by the ids of what was kept for it
    (`attachments.keep_attachment`), of which the pictures are shown to the model and all go into the
    workspace; what others' servers said (`attachments.keep_foreign`) stands in it as theirs. `front_end` is
    what the program that she speaks through sends along; what it tells the agent is nobody's here.
    `untrusted_by` says what strangers' words the text holds, if any.

    `key` is the sender's idempotency key: the same message twice under one is stored once and returned.
    With `interrupt` the current turn is stopped and this message is taken next; without it, a message
    sent while questions wait for an answer is the answer and joins the turn. Raises NotFound,
    Invalid for an empty text, an attachment that no model could read and what `check_front_end` does
    not take, TooLarge, Conflict when too many messages wait already and for a key of another message,
    TooMany when the actor sends them too fast, Busy as `check_media`, and what `attached` raises of the
    files.
    """
    text = checked_text(text) if text.strip() or not (attachments or files) else ""
    if key is not None and not (0 < len(key) <= KEY_LIMIT and key.isprintable()):
        raise Invalid(
            _("The key is empty, has more than %(limit)d characters, or some that do not print.")
            % {"limit": KEY_LIMIT},
            field="key",
            hint=_("Leave it out."),
        )
    if attachments or files:
        before = SENT_BEFORE.first(conversation=conversation.pk, key=key) if key else None
        if before is None:
            require_room(actor)
        elif files:
            require_writable(actor, conversation)
            return sent_before(before, sender=actor, text=text)
        attachments = check_media(attachments, who=whose_place(actor), field="attachments")
    # Copied before the row is there: that they are foreign is known before anybody can read them.
    with (
        attached(actor=actor, conversation=conversation, uids=files) as given,
        transaction.atomic(),
    ):
        held = writable_conversation(actor, conversation)
        if key is not None:
            known = SENT_BEFORE.first(conversation=held.pk, key=key)
            if known is not None:
                return sent_before(known, sender=actor, text=text)
        if held.queued_count >= settings.AGENTSITE_QUEUED_MESSAGES:
            raise Conflict(
                _("%(count)d messages wait already.") % {"count": held.queued_count},
                hint=_("Wait for an answer, or remove one of them."),
            )
        count_message(actor)
        said: tuple[Block, ...] = (Text(text=text),) if text else ()
        if front_end is not None:
            if actor.pk != held.owner_id:
                raise Forbidden(_("Only the conversation's owner speaks through a front end."))
            check_front_end(held, front_end)
        content = (*said, *attachments, *given.pictures, *given.documents)
        said_so = UserMessage(
            content=content,
            front_end=front_end,
            files=given.files,
            untrusted_by=untrusted_by or given.source,
        )
        message = Entry.of(said_so)
        if interrupt and held.may_be_interrupted:
            append(held.pk, [Entry.of(UserInterrupt())], actor=actor, held=held)
        entries = [message]
        if not held.title:
            title = title_from(text or given.title)
            entries.append(Entry.of(SessionUpdated(title=title, made_of=message.uid)))
        row = append(held.pk, entries, actor=actor, key=key, held=held)[0]
        if not interrupt and set_questions_aside(held, actor):
            append(held.pk, [Entry.of(MessageSteered(event_id=row.uid))], actor=actor)
        for file in given.stored:
            delete_file(actor=actor, file=file)
        given.take(held)
        wake(held.pk)
    return row


def sent_before(known: Event, *, sender: User, text: str) -> Event:
    """What was stored under a sender's key. Raises Conflict where that is not this message of hers: what she
    says now would be lost, and she would not know."""
    value = known.value
    said = text_of(value.content[:1]) if isinstance(value, UserMessage) else None
    if known.actor_id != sender.pk or said != mended(text):
        raise Conflict(
            _("This key was used for another message."), hint=_("Use a new key for each message.")
        )
    return known


def title_from(text: str) -> str:
    """The first words of a message, on one line, cut at a word where that is possible."""
    line = " ".join(text.split())
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1]
    head, space, _tail = cut.rpartition(" ")
    return (head if space and len(head) > TITLE_LENGTH // 2 else cut) + "…"


def stop(*, actor: User, conversation: Conversation, holds_queue: bool = False) -> Event | None:
    """Interrupt the current turn; None when there is nothing to interrupt. With `holds_queue`, what waits
    is not taken either, before somebody says more (`actions.queue`)."""
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        if not held.may_be_interrupted:
            return None
        if holds_queue and held.queued_count:
            append(held.pk, [Entry.of(QueueHeld())], actor=actor)
        return _append(held, UserInterrupt(), actor)


def withdraw_message(*, actor: User, conversation: Conversation, message_uid: str) -> Event:
    """Remove a message that still waits. Raises Conflict when it was taken or removed before."""
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        _waiting_message(held, message_uid, actor)
        return _append(held, MessageWithdrawn(event_id=message_uid), actor)


def edit_message(*, actor: User, conversation: Conversation, message_uid: str, text: str) -> Event:
    """Change what a message of one's own that still waits will say. Raises Conflict once it was taken, and
    LimitReached past `MOST_EDITS`."""
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        message = _waiting_message(held, message_uid, actor)
        if message.actor_id not in {None, actor.pk}:
            raise Forbidden(
                _("These are somebody else's words."), hint=_("Withdraw the message instead.")
            )
        edited = MessageEdited(event_id=message_uid, content=(Text(text=checked_text(text)),))
        before = Event.objects.filter(conversation=held, subject=message_uid, type=edited.type)
        if before.count() >= MOST_EDITS:
            raise LimitReached(
                _("This message was edited %(limit)d times, the most there may be.")
                % {"limit": MOST_EDITS},
                hint=_("Withdraw it, and send another one."),
            )
        return _append(held, edited, actor)


def steer_message(*, actor: User, conversation: Conversation, message_uid: str) -> Event:
    """Have a waiting message join the current turn at its next tool boundary. Said twice it is the same
    event."""
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        _waiting_message(held, message_uid, actor)
        steered = MessageSteered(event_id=message_uid)
        before = Event.objects.filter(conversation=held, subject=message_uid, type=steered.type)
        return before.first() or _append(held, steered, actor)


def request_retry(*, actor: User, conversation: Conversation) -> Event:
    """Go on after a failure, a limit or a stop; where a failed request waits for its time, at once.
    Raises Conflict while it is at work or has nothing to go on with."""
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        if held.status == Conversation.Status.RESCHEDULING:
            delays.hurry(held)
            return _append(held, RetryRequested(), actor)
        if held.is_running or held.waits_for_person or held.waits_for_worker:
            raise Conflict(_("The conversation is not at rest."), hint=_("Wait, or stop it first."))
        if not may_retry(held):
            raise Conflict(_("There is nothing to try again."), hint=_("Send a message instead."))
        return _append(held, RetryRequested(), actor)


def set_feature(
    *, actor: User, conversation: Conversation, feature: str, enabled: bool
) -> Event | None:
    """Turn a switch of the conversation, at any time; None when it stands so already."""
    known = list(Features.model_fields)
    if feature not in known:
        raise Invalid(
            _("There is no feature “%(name)s”.") % {"name": feature},
            field="feature",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(known)},
        )
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        if getattr(held.features, feature) == enabled:
            return None
        return _append(held, SessionUpdated(features={feature: enabled}), actor)


def checked_text(text: str) -> str:
    """What is stored of a message's text; raises Invalid for none and TooLarge."""
    text = text.replace("\0", "").strip()
    if not text:
        raise Invalid(_("The message is empty."), field="content", hint=_("Type something."))
    limit = settings.AGENTSITE_MESSAGE_CHARACTERS
    if len(text) > limit:
        raise TooLarge(
            _("The message has %(size)d characters; at most %(limit)d are taken.")
            % {"size": len(text), "limit": limit},
            field="content",
            hint=_("Shorten it, or upload it as a file."),
        )
    return text


def _waiting_message(conversation: Conversation, uid: str, actor: User) -> Event:
    """Her own; the conversation's owner acts on everybody's."""
    messages = Event.objects.filter(
        conversation=conversation, uid=uid.replace("\0", ""), type="user.message"
    )
    message = messages.first()
    if message is None:
        raise NotFound(_("There is no such message."))
    if actor.pk not in {conversation.owner_id, message.actor_id}:
        raise Forbidden(
            _("This is somebody else's message."), hint=_("Ask her, or the conversation's owner.")
        )
    if message.processed_at is not None:
        raise Conflict(_("This message no longer waits."), hint=_("Stop the answer instead."))
    return message


def _append(conversation: Conversation, event: EventValue, actor: User) -> Event:
    row = append(conversation.pk, [Entry.of(event)], actor=actor)[0]
    wake(conversation.pk)
    return row
