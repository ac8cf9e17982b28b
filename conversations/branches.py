"""The branches of a conversation, read from the tables: which of its rows count, and what its columns say.

The rule itself is `harness.branches`'. A conversation in which nobody ever went back (`rewound_seq` is
null) costs no query here. Choosing a branch is `actions.branching`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from harness.branches import TURN_TYPES, Branches, Path, anywhere_types
from harness.events import Rewound, SessionStatusIdle, UserCustomToolResult, UserMessage
from harness.history import History
from jobs.prepared import Prepared

from .models import Conversation, Event

_REWINDS = Prepared(
    lambda given: (
        Event.objects.filter(conversation=given.conversation, type="x.rewound", seq__lte=given.last)
        .order_by("seq")
        .only("seq", "payload")
    )
)
_TURNS = Prepared(
    lambda given: (
        Event.objects.filter(
            conversation=given.conversation, type__in=TURN_TYPES, seq__lte=given.last
        )
        .order_by("seq")
        .values_list("seq")
    )
)


def branches_of(conversation_id: int, last: int, *, siblings: bool = False) -> Branches:
    """As the log was when event `last` was its last; with what `siblings` needs where it is asked for."""
    rewinds = []
    for row in _REWINDS.all(conversation=conversation_id, last=last):
        value = row.value
        if isinstance(value, Rewound):
            rewinds.append((row.seq, value.behind))
    turns = _TURNS.all(conversation=conversation_id, last=last) if siblings and rewinds else ()
    return Branches(tuple(rewinds), last, tuple(seq for (seq,) in turns))


def counting(conversation: Conversation) -> QuerySet[Event]:
    """The rows of the log that count now."""
    log = Event.objects.filter(conversation=conversation)
    if conversation.rewound_seq is None:
        return log
    return log.filter(within(branches_of(conversation.pk, conversation.last_seq).path()))


def counts(conversation: Conversation) -> Callable[[Event], bool]:
    """Whether a row of the log counts now."""
    if conversation.rewound_seq is None:
        return lambda row: True
    path = branches_of(conversation.pk, conversation.last_seq).path()
    anywhere = anywhere_types()
    return lambda row: row.seq in path or row.type in anywhere


def within(path: Path) -> Q:
    chosen = Q(type__in=anywhere_types())
    for first, last in path.stretches:
        chosen |= Q(seq__gte=first, seq__lte=last)
    return chosen


@dataclass(frozen=True, slots=True)
class Standing:
    """What a conversation's columns say once a branch was chosen."""

    stop_reason: str
    context_tokens: int
    front_end_seq: int | None
    owes_run: bool


def standing(history: History) -> Standing:
    """By the whole log."""
    stop_reason, front_end = "", None
    for entry in history.entries:
        match entry.event:
            case SessionStatusIdle(stop_reason=reason):
                stop_reason = reason.type
            case UserMessage() | UserCustomToolResult() if entry.event.front_end is not None:
                front_end = entry.seq
            case _:
                pass
    return Standing(stop_reason, history.context_tokens, front_end, history.has_work)
