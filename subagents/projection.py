"""Subagents as the logs of parent and child move them, always in the transaction of the event.

A call that is handed out to this package leaves a row; the child's rest ends it; a stop of the parent asks
for the end of those it waits for. What follows outside of the transaction is dispatched.
"""

from __future__ import annotations

from django.utils import timezone

from conversations import logsql
from conversations.ancestry import root_of
from conversations.models import Conversation, Event
from harness.events import (
    WAITS_FOR_SUBAGENTS,
    CallHandedOut,
    EndTurn,
    MessageWithdrawn,
    RequiresAction,
    Rewound,
    SessionStatusIdle,
    SessionStatusRunning,
    SessionStatusTerminated,
    UserInterrupt,
)
from harness.events import Event as EventValue
from harness.hooks import HELD_BACK
from jobs.dispatch import dispatch
from jobs.prepared import Prepared

from .casting import files_of, type_called, usual_of
from .models import LIVE, Subagent
from .tools import CARRIER

BEGIN, TELL, END = "subagents.begin", "subagents.tell", "subagents.end_asked"
ASKS = "subagents.tell_asks"

FOLLOWED = (
    CallHandedOut,
    SessionStatusIdle,
    SessionStatusRunning,
    SessionStatusTerminated,
    MessageWithdrawn,
    UserInterrupt,
    Rewound,
)

State = Subagent.State

_IN_HAND = Prepared(
    lambda given: Subagent.objects.filter(
        parent=given.parent, told_at=None, state__in=list(LIVE)
    ).values_list("call_uid")
)


def project(conversation: Conversation, row: Event, event: EventValue) -> None:
    if isinstance(event, SessionStatusIdle | SessionStatusRunning | SessionStatusTerminated):
        _look_who_asks(conversation, event)
    match event:
        case CallHandedOut(carrier=carrier) if carrier == CARRIER:
            _ask(conversation, event)
        case SessionStatusIdle(stop_reason=RequiresAction()):
            pass
        case SessionStatusIdle():
            if conversation.parent_id is not None:
                _rest(conversation, row, event)
        case SessionStatusTerminated():
            if conversation.parent_id is not None:
                _end(conversation, row, State.FAILED, "Its conversation was ended.")
            _stop_waited_for(conversation)
        case MessageWithdrawn(event_id=uid) if conversation.parent_id is not None:
            _end(conversation, row, State.STOPPED, "It was not asked after all.", asked=uid)
        case UserInterrupt() | Rewound():
            _stop_waited_for(conversation)
        case _:
            pass


def _look_who_asks(conversation: Conversation, event: EventValue) -> None:
    """Where a conversation below begins or rests, or the one above all rests for those below."""
    if conversation.parent_id is not None:
        dispatch(ASKS, root=root_of(conversation))
    elif isinstance(event, SessionStatusIdle) and event.waits_for(WAITS_FOR_SUBAGENTS):
        dispatch(ASKS, root=conversation.pk)


def calls_in_hand(conversation: Conversation) -> set[str]:
    """The calls that subagents carry out or are about to."""
    return {call for (call,) in _IN_HAND.all(parent=conversation.pk)}


def _ask(conversation: Conversation, event: CallHandedOut) -> None:
    given = event.input
    inline = given.get("inline") if isinstance(given.get("inline"), dict) else {}
    named = (inline or {}).get("name") or given.get("agent") or usual_of(conversation.config)
    name = str(named)[:100]
    kind = type_called(name) if not inline else None
    row = Subagent(
        parent=conversation,
        root_id=root_of(conversation),
        call_uid=event.tool_use_id,
        given=given,
        kind=name,
        description=" ".join(str(given.get("description", "")).split())[:200],
        background=bool(given.get("background", False)),
        files=files_of(given, kind),
    )
    logsql.insert([row])
    dispatch(BEGIN, pk=row.pk, root=row.root_id)


def _rest(child: Conversation, row: Event, rest: SessionStatusIdle) -> None:
    words = detail_of(rest)
    if rest.interrupted:
        _end(child, row, State.STOPPED, "It was stopped.")
    elif rest.stop_details is not None and rest.stop_details.code == HELD_BACK:
        # The reason may be others' words, which nobody above has been marked with.
        _end(child, row, State.FAILED, "A hook let it ask no model; its own conversation says why.")
    elif isinstance(rest.stop_reason, EndTurn):
        _end(child, row, State.COMPLETED, words)
    else:
        _end(child, row, State.FAILED, words)


def detail_of(rest: SessionStatusIdle) -> str:
    """How a child ended that rests so, where the state does not say it."""
    details = rest.stop_details
    return details.words[:500] if details is not None else ""


def _end(child: Conversation, row: Event, state: State, detail: str, *, asked: str = "") -> None:
    """End what the child was asked last, if this is about that: a turn of a person's own is not."""
    working = Subagent.objects.working().filter(child=child)
    found = (working.filter(asked_event=asked) if asked else working).first()
    if found is None:
        return
    waits = Event.objects.filter(
        conversation=child, uid=found.asked_event, processed_at=None
    ).exists()
    if waits and not asked and state is not State.FAILED:
        return
    found.state, found.detail = state, detail[:500]
    found.ended_at, found.ended_seq = timezone.now(), row.seq
    found.save(update_fields=["state", "detail", "ended_at", "ended_seq"])
    dispatch(TELL, pk=found.pk, root=found.root_id)


def _stop_waited_for(conversation: Conversation) -> None:
    """Whoever this conversation waits for has nobody to answer any more. The background goes on."""
    live = Subagent.objects.live().in_foreground().filter(parent=conversation)
    if live.filter(stop_asked_at=None).update(stop_asked_at=timezone.now()):
        dispatch(END, parent=conversation.pk)
