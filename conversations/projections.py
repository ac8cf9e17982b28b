"""What apps do in the transaction that stores an event: the seam by which a subject joins the log.

An app says at start-up which types of events it follows and when its turn is (`follow`); `log` calls
it with each of them and knows no app's name. What such an event means is the app's own matter. Events
that are `plain` by their class are followed by nobody, which is what makes them cheap to store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from harness.events import Event as EventValue

from .models import Conversation, Event

Project = Callable[[Conversation, Event, EventValue], None]
"""Called with the held conversation, whose columns it may change, the stored row and its value. What
it raises rolls the event back."""


class NotStored(Exception):
    """A projection refuses an event: nothing of the append is stored."""

    def note(self, conversation_id: int) -> None:
        """Called behind the transaction that was rolled back, to keep in one of its own what must be
        known of the refusal."""


class Turn(IntEnum):
    """When an app's turn is, for one event. Within one turn, in the order of INSTALLED_APPS."""

    BEFORE = 0
    """The conversation's own columns are still what they were."""
    AFTER = 1
    """They say what the event made of them."""


@dataclass(frozen=True, slots=True)
class _Followers:
    before: list[Project] = field(default_factory=list)
    after: list[Project] = field(default_factory=list)


_NOBODY = _Followers()
_by_type: dict[type[EventValue], _Followers] = {}
_carried: list[Callable[[Conversation], set[str]]] = []


def follow(project: Project, *types: type[EventValue], turn: Turn) -> None:
    """Have `project` called for every event of these types from now on; once, however often it is
    said. Raises `TypeError` for a type that is plain: it is stored on a road that calls nobody."""
    for kind in types:
        if kind.plain:
            raise TypeError(f"{kind.__name__} is plain: nobody is told of it")
        followers = _by_type.setdefault(kind, _Followers())
        chosen = followers.before if turn is Turn.BEFORE else followers.after
        if project not in chosen:
            chosen.append(project)


def before(conversation: Conversation, row: Event, event: EventValue) -> None:
    for project in _by_type.get(type(event), _NOBODY).before:
        project(conversation, row, event)


def after(conversation: Conversation, row: Event, event: EventValue) -> None:
    for project in _by_type.get(type(event), _NOBODY).after:
        project(conversation, row, event)


def carries_out(calls: Callable[[Conversation], set[str]]) -> None:
    """Say which open calls of a conversation somebody carries out elsewhere, so that nobody is asked
    about them and a rest does not wait for a person."""
    if calls not in _carried:
        _carried.append(calls)


def carried_out_elsewhere(conversation: Conversation) -> set[str]:
    """The ids of the calls that somebody has, or is to take, to carry them out."""
    return {call for calls in _carried for call in calls(conversation)}
