"""Whether a conversation at rest has anything to go on with, asked of the tables.

The same answer as `harness.history.History.may_retry` gives of the whole log, without reading it: a
click must not cost more the longer the conversation is. Who may ask for it is the actions'.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from harness.events import (
    ANSWERS,
    EndTurn,
    InputTaken,
    RequiresAction,
    SessionStatusIdle,
    SpanModelRequestEnd,
    SpanModelRequestStart,
)
from harness.history import BACKGROUND_TURNS

from .branches import counting
from .models import Conversation, Event
from .opencalls import unanswered_after

_TURN = ("session.status_idle", "x.input_taken", "x.retry_requested")
"""What opens and closes a turn."""
_COMPLETE = ("end_turn", "stop_sequence")
_WORDS = ("user.message", "user.define_outcome", "x.content_set_aside")
"""What a person says that lets what waits begin."""
A_FEW = 5
_WAKERS = ("x.wake_due", "x.background_finished")


def may_retry(conversation: Conversation) -> bool:
    """Something was asked and not answered, and no turn is open."""
    log = counting(conversation)
    rest = _latest(log, *_TURN)
    if not isinstance(rest, SessionStatusIdle) or isinstance(rest.stop_reason, RequiresAction):
        return False
    if _has_open_calls(log) or _last_reply_is_missing(log):
        return True
    held = not isinstance(rest.stop_reason, EndTurn) and _nothing_was_said_since_the_rest(log)
    return held and _something_waits(log)


def _latest(log: QuerySet[Event], *types: str) -> Any:
    """The value of the last event of these types; None where there is none."""
    row = log.filter(type__in=types).order_by("-seq").first()
    return row.value if row is not None else None


def _has_open_calls(log: QuerySet[Event]) -> bool:
    begun_anew = log.filter(type="x.retry_requested", payload__from_start=True)
    forgotten = begun_anew.order_by("-seq").values_list("seq", flat=True).first() or 0
    return unanswered_after(log, forgotten).exists()


def _last_reply_is_missing(log: QuerySet[Event]) -> bool:
    found = log.filter(type__in=("span.model_request_end", "x.input_taken", *ANSWERS))
    aside = set(log.filter(type="x.content_set_aside").values_list("subject", flat=True))
    for row in _newest_first(found):
        match row.value:
            case SpanModelRequestEnd() if not _is_of_the_dialogue(row):
                continue
            case SpanModelRequestEnd(is_error=True) if aside:
                continue
            case SpanModelRequestEnd(is_error=False, end=end):
                return end not in _COMPLETE
            case InputTaken(event_ids=uids) if uids and aside.issuperset(uids):
                continue
            case _:
                return True
    return False


def _newest_first(log: QuerySet[Event]) -> Iterator[Event]:
    """A few at a time: most often the first one is the last word."""
    rows, place = log.order_by("-seq"), 0
    while some := list(rows[place : place + A_FEW]):
        yield from some
        place += A_FEW


def _is_of_the_dialogue(end: Event) -> bool:
    """Whether the request that ended was one of the dialogue, and no summary's."""
    start = Event.objects.filter(conversation=end.conversation_id, uid=end.subject).first()
    value = start.value if start is not None else None
    return not isinstance(value, SpanModelRequestStart) or value.purpose == "main"


def _nothing_was_said_since_the_rest(log: QuerySet[Event]) -> bool:
    said = log.filter(type__in=("session.status_idle", *_WORDS)).order_by("-seq").first()
    return said is not None and said.type == "session.status_idle"


def _something_waits(log: QuerySet[Event]) -> bool:
    waiting = log.filter(processed_at=None)
    if waiting.filter(type__in=("user.message", "user.define_outcome", "x.wake_due")).exists():
        return True
    ended = waiting.filter(type="x.background_finished").exists()
    return ended and _turns_woken_in_a_row(log) < BACKGROUND_TURNS


def _turns_woken_in_a_row(log: QuerySet[Event]) -> int:
    """How many of the last turns no person began, as far as it matters."""
    turns = log.filter(type="x.input_taken").exclude(payload__steered=True).order_by("-seq")
    woken = 0
    for row in turns[:BACKGROUND_TURNS]:
        taken = row.payload["event_ids"]
        if not Event.objects.filter(uid__in=taken, type__in=_WAKERS).exists():
            break
        woken += 1
    return woken
