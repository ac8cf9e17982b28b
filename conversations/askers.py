"""For whom a turn is (`Conversation.asker_id`): who pays for it where several people write.

Told as the log grows (`conversations.log`). Who is a requester of what a turn asks is `writers`' part: all
who wrote, whatever turn it is.
"""

from __future__ import annotations

from django.db.models import Q

from harness.events import BackgroundFinished, InputTaken, RetryRequested, Rewound, WakeDue

from .models import Conversation, Event
from .models.event import EventQuerySet

_BEGINS = ("x.input_taken", "x.retry_requested", "x.rewound")
LOOKED_BACK = 50
"""Turns, for whose it was that an agent has itself woken again and again."""


def note_asker(conversation: Conversation, row: Event, taken: InputTaken) -> None:
    """Whose words the turn that begins, or goes on, answers: of several the last one's. What the agent
    above says is said for whom that one answered; what wakes it, for whom it was begun."""
    last = _said_last(conversation, taken)
    if last is not None and not last.payload.get("by_agent"):
        keep_asker(conversation, last.actor_id)
    elif last is not None and conversation.parent is not None:
        keep_asker(conversation, _asker_above(conversation.parent, last))
    elif last is None and not taken.steered and (asker := _begun_for(conversation, row)):
        keep_asker(conversation, asker)


def keep_asker(conversation: Conversation, actor_id: int | None) -> None:
    conversation.asked_by_id = actor_id
    conversation.save(update_fields=["asked_by"])


def _said_last(conversation: Conversation, taken: InputTaken) -> Event | None:
    said = Event.objects.filter(
        conversation=conversation,
        uid__in=taken.event_ids,
        type__in=("user.message", "user.define_outcome"),
    )
    by_agent = Q(type="user.message", payload__by_agent=True)
    return said.filter(by_agent | Q(actor__isnull=False)).order_by("seq").last()


def _begun_for(conversation: Conversation, begin: Event | None) -> int | None:
    """For whom the turn is that begins so: who said it or had it done anew, for whom the agent above worked
    then, or for whom the turn was in which the agent asked for this wake or began what has ended; None:
    unknown."""
    for _turn in range(LOOKED_BACK):
        if begin is None:
            return None
        last = None
        match begin.value:
            case Rewound() | RetryRequested(resumed=False):
                return begin.actor_id
            case InputTaken() as taken:
                last = _said_last(conversation, taken)
        if last is not None and not last.payload.get("by_agent"):
            return last.actor_id
        if last is not None and conversation.parent is not None:
            return _asker_above(conversation.parent, last)
        begin = _begins(conversation).filter(seq__lte=_led_to(conversation, begin)).first()
    return None


def _asker_above(parent: Conversation, said: Event) -> int:
    """For whom it worked as its agent said this to one below."""
    begin = _begins(parent).filter(created_at__lte=said.created_at).first()
    return _begun_for(parent, begin) or parent.asker_id


def _begins(conversation: Conversation) -> EventQuerySet:
    """What turns of it began or went on with, the last first."""
    log = Event.objects.filter(conversation=conversation, type__in=_BEGINS)
    return log.order_by("-seq")


def _led_to(conversation: Conversation, begin: Event) -> int:
    """The number of what brought about by itself that a turn begins; 0: that is not there any more."""
    taken, log = begin.value, Event.objects.filter(conversation=conversation)
    uids = taken.event_ids if isinstance(taken, InputTaken) and not taken.steered else ()
    waker = log.filter(uid__in=uids).order_by("-seq").first()
    match waker.value if waker is not None else None:
        case WakeDue(reason=reason, note=note):
            type_, named = "x.wake_requested", {"reason": reason, "note": note}
        case BackgroundFinished(subagent=uid) if uid:
            type_, named = "x.subagent_started", {"subagent": uid}
        case BackgroundFinished(background_id=uid):
            type_, named = "x.background_started", {"background_id": uid}
        case _:
            return begin.seq - 1
    given = {f"payload__{name}": value for name, value in named.items()}
    begun = log.filter(type=type_, seq__lt=begin.seq, **given).order_by("-seq").first()
    return begun.seq if begun is not None else 0
