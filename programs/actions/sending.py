"""Several inputs for one conversation in one go: all are taken, or none.

Each kind goes through the action that every door uses; here is only their order, the transaction,
and what a program is told when it says a thing twice.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.persons import whose_place
from conversations.actions import messages
from conversations.actions.answers import answer_custom_tool
from conversations.actions.deciding import decide_call
from conversations.actions.media import brings_files, check_sent_together
from conversations.actions.outcomes import define_outcome
from conversations.actions.own import writable_conversation
from conversations.models import Conversation, Event
from conversations.ratelimits import require_room
from harness.content import Text, text_of
from harness.errors import AlreadyDecided, Conflict, NotFound, NotWaiting
from harness.events import (
    VOIDS_ANSWERS,
    UserCustomToolResult,
    UserDefineOutcome,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
)
from harness.events import Event as EventValue
from harness.faults import below, place
from harness.ids import new_event_id
from wire.fieldnames import written


@dataclass(frozen=True, slots=True)
class Decided:
    """An answer to a call that asks, and which question it answers, as far as its sender says so."""

    answer: UserToolConfirmation
    seen_round: int | None = None
    read_to: str = ""
    """The event up to which the sender has read the call's conversation."""


Input = (
    UserMessage
    | UserInterrupt
    | UserToolConfirmation
    | Decided
    | UserCustomToolResult
    | UserDefineOutcome
)


@dataclass(frozen=True, slots=True)
class Sent:
    """An input as it is in the log now, or as it would be: an interrupt of nothing is not stored."""

    uid: str
    value: EventValue
    processed_at: datetime | None
    seq: int | None
    thread_uid: str | None = None
    """The conversation it went to, if another than the one it was sent to."""


def send_events(
    *,
    actor: User,
    conversation: Conversation,
    events: Sequence[Input],
    key: str | None = None,
    field: str = "events",
    called: Mapping[str, str] = MappingProxyType({}),
) -> list[Sent]:
    """Hand each of `events` to its action. A call of a conversation that this one started may be
    answered here too. `key` makes the whole idempotent.

    Raises what the actions raise, and Conflict for a conversation that is archived; then nothing
    has happened. What is wrong with one of them is named by its place in `field`, and by what its sender
    calls it (`called`, as in `written`); an empty `field`: by no place.
    """
    keys = {number: f"{key}:{number}" for number in range(len(events))} if key else {}
    known = Event.objects.filter(conversation=conversation, key__in=list(keys.values()))
    before = set(known.values_list("key", flat=True)) if keys else set()
    check_inputs(
        events,
        actor=actor,
        field=field,
        resent={number for number, each in keys.items() if each in before},
    )
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        if held.archived_at is not None:
            raise Conflict(
                _("This conversation is archived and takes nothing more."),
                hint=_("Begin a new one."),
            )
        sent = []
        for number, event in enumerate(events):
            with written(called, at=place(field, number) if field else ""):
                sent.append(_send(actor, held, event, keys.get(number)))
        return sent


def check_inputs(
    events: Sequence[Input], *, actor: User, field: str = "events", resent: Container[int] = ()
) -> None:
    """Raises Invalid for a picture or document that no model service could open, Busy as `check_media`,
    and TooMany, before anything is opened, when the actor sends messages too fast. The messages at the
    places of `resent` are in the log."""
    said = {
        number: event
        for number, event in enumerate(events)
        if isinstance(event, UserMessage | UserCustomToolResult) and brings_files(event.content)
    }
    if any(isinstance(said[number], UserMessage) for number in said if number not in resent):
        require_room(actor)
    check_sent_together(
        [(below(field, place(number, "content")), event.content) for number, event in said.items()],
        who=whose_place(actor),
    )


def _send(actor: User, held: Conversation, event: Input, key: str | None) -> Sent:
    match event:
        case UserMessage():
            row = messages.post_message(
                actor=actor,
                conversation=held,
                text=text_of(event.content),
                key=key,
                attachments=[block for block in event.content if not isinstance(block, Text)],
                front_end=event.front_end,
                untrusted_by=event.untrusted_by,
            )
            return _stored(row)
        case UserInterrupt():
            target = _thread(held, event.session_thread_id)
            stopped = messages.stop(actor=actor, conversation=target)
            if stopped is None:
                return Sent(new_event_id(), event, timezone.now(), None)
            return _stored(stopped, held)
        case UserToolConfirmation():
            return _confirm(actor, held, Decided(event), key)
        case Decided():
            return _confirm(actor, held, event, key)
        case UserCustomToolResult():
            return _give(actor, held, event)
        case UserDefineOutcome():
            row = define_outcome(
                actor=actor,
                conversation=held,
                description=event.description,
                rubric=event.rubric,
                max_iterations=event.max_iterations,
                checks=event.checks,
            )
            return _stored(row)


def _confirm(actor: User, held: Conversation, given: Decided, key: str | None) -> Sent:
    event = given.answer
    target = _conversation_of(held, event.tool_use_id)
    try:
        with transaction.atomic():
            row = _decide(actor, target, given, key)
    except (AlreadyDecided, NotWaiting):
        before = _answer_before(target, event.tool_use_id, event.type)
        said = before.value if before is not None else None
        if before is None or not isinstance(said, UserToolConfirmation):
            raise
        if _meaning(said) != _meaning(event):
            raise
        return _stored(before, held)
    return _stored(row, held)


def _meaning(answer: UserToolConfirmation) -> tuple[object, ...]:
    return answer.result, answer.deny_message or "", answer.edited_input


def _decide(actor: User, target: Conversation, given: Decided, key: str | None) -> Event:
    event = given.answer
    return decide_call(
        actor=actor,
        conversation=target,
        call_uid=event.tool_use_id,
        allow=event.result == "allow",
        reason=event.deny_message or "",
        seen_round=given.seen_round,
        read_to=given.read_to,
        edited_input=event.edited_input,
        key=key,
    )


def _give(actor: User, held: Conversation, event: UserCustomToolResult) -> Sent:
    target = _conversation_of(held, event.custom_tool_use_id)
    try:
        with transaction.atomic():
            row = answer_custom_tool(
                actor=actor,
                conversation=target,
                call_uid=event.custom_tool_use_id,
                content=event.content,
                is_error=event.is_error,
                front_end=event.front_end,
            )
    except Conflict:
        before = _answer_before(target, event.custom_tool_use_id, event.type)
        said = before.value if before is not None else None
        if before is None or not isinstance(said, UserCustomToolResult):
            raise
        if (said.content, said.is_error) != (event.content, event.is_error):
            raise
        return _stored(before, held)
    return _stored(row, held)


def _answer_before(conversation: Conversation, call_uid: str, kind: str) -> Event | None:
    """The same answer sent again is no second one: its sender may not have heard that it was taken.

    What was answered before the call was asked about anew is no answer to the question since.
    """
    rows = Event.objects.filter(
        conversation=conversation, subject=call_uid, type__in=(kind, *VOIDS_ANSWERS)
    )
    last = rows.order_by("-seq").first()
    return last if last is not None and last.type == kind else None


def _conversation_of(held: Conversation, call_uid: str) -> Conversation:
    """Where the call was made: in this conversation or in one it started."""
    call = Event.objects.filter(uid=call_uid).select_related("conversation").first()
    if call is None or not _is_within(call.conversation, held):
        raise NotFound(_("There is no such call."))
    return call.conversation


def _thread(held: Conversation, thread_uid: str | None) -> Conversation:
    if thread_uid is None or thread_uid == held.uid:
        return held
    found = Conversation.objects.filter(uid=thread_uid).first()
    if found is None or not _is_within(found, held):
        raise NotFound(_("There is no such thread."))
    return found


def _is_within(conversation: Conversation, ancestor: Conversation) -> bool:
    each: Conversation | None = conversation
    while each is not None:
        if each.pk == ancestor.pk:
            return True
        each = each.parent
    return False


def _stored(row: Event, held: Conversation | None = None) -> Sent:
    elsewhere = held is not None and row.conversation_id != held.pk
    return Sent(
        row.uid,
        row.value,
        row.processed_at,
        row.seq,
        row.conversation.uid if elsewhere else None,
    )
