"""Branches of a conversation: which of its one append-only log counts, as a pure function of the log.

An `x.rewound` says behind which event the dialogue goes on; what stands between is a sibling's. Nothing
is ever changed or taken away: a path is a choice of stretches of the log. Who may rewind, and to where,
is `conversations.actions.branching`'s; what is owed on a path `history`'s.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.events import (
    AppEvent,
    ContentRedacted,
    ContentSetAside,
    FeedbackGiven,
    MessagePinned,
    Rewound,
    SessionUpdated,
    telling_of_before,
)

if TYPE_CHECKING:
    from harness.events import Event
    from harness.history import Entry

ANYWHERE = (SessionUpdated, ContentSetAside, ContentRedacted, FeedbackGiven, MessagePinned)
"""Events about the conversation rather than its dialogue: they hold on every branch."""
_ANYWHERE_TYPES = tuple(kind.model_fields["type"].default for kind in ANYWHERE)

TURN_TYPES = ("session.status_running", "x.input_taken", "span.model_request_start")
"""What a turn leaves behind. A branch without any has nothing to go back to."""

LEAD_TYPES = frozenset(
    {
        "session.status_running",
        "session.thread_created",
        "user.message",
        "user.interrupt",
        "x.message_edited",
        "x.message_withdrawn",
        "x.message_steered",
        "x.queue_ordered",
        "x.queue_held",
        "x.queue_released",
        "x.wake_due",
        "x.background_started",
        "x.background_finished",
        "x.subagent_ended",
        "x.rewound",
        *_ANYWHERE_TYPES,
    }
)
"""What may stand between two turns and is no part of either: what waited at a place is not gone back to."""


def anywhere_types() -> tuple[str, ...]:
    """The types of all that `holds_anywhere`, those of apps among them."""
    return (*_ANYWHERE_TYPES, *telling_of_before())


def holds_anywhere(event: Event) -> bool:
    """Whether it counts on every branch, wherever it stands. What tells of words before it does: where
    somebody went back to a place between, the words are there and it would not be."""
    if isinstance(event, AppEvent):
        return event.tells_of_before()
    return isinstance(event, ANYWHERE)


@dataclass(frozen=True, slots=True)
class Path:
    """Stretches of a log, each from a first to a last number, in order."""

    stretches: tuple[tuple[int, int], ...]

    def __contains__(self, seq: object) -> bool:
        if not isinstance(seq, int):
            return False
        place = bisect_right(self.stretches, seq, key=lambda stretch: stretch[0]) - 1
        return place >= 0 and seq <= self.stretches[place][1]

    def shared_with(self, other: Path) -> int:
        """The number of the last event up to which both are the same; 0: they share nothing."""
        shared = 0
        for mine, theirs in zip(self.stretches, other.stretches, strict=False):
            if mine[0] != theirs[0]:
                break
            shared = min(mine[1], theirs[1])
            if mine[1] != theirs[1]:
                break
        return shared


@dataclass(frozen=True, slots=True)
class Siblings:
    """The branches that go on behind one place: an event of each, by which it is chosen, oldest first,
    and which of them counts now."""

    choices: tuple[int, ...]
    chosen: int


@dataclass(frozen=True, slots=True)
class Branches:
    """All branches of one log."""

    rewinds: tuple[tuple[int, int], ...]
    """Of each `x.rewound` its number, and the number behind which the dialogue goes on."""
    last: int
    """The number of the log's last event."""
    turns: tuple[int, ...] = ()
    """The numbers of events of `TURN_TYPES`; needed for `siblings` and `tip` alone."""

    def path(self, tip: int | None = None) -> Path:
        """What counts now, or counted when `tip` was the log's last event."""
        found: list[tuple[int, int]] = []
        end = self.last if tip is None else tip
        while end > 0:
            place = self._branch_of(end)
            if place < 0:
                found.append((1, end))
                break
            seq, behind = self.rewinds[place]
            found.append((seq, end))
            end = min(behind, seq - 1)
        return Path(tuple(reversed(found)))

    def siblings(self) -> dict[int, Siblings]:
        """For each place of the present path behind which more than one branch goes on."""
        path = self.path()
        found: dict[int, Siblings] = {}
        for behind in sorted({behind for _seq, behind in self.rewinds}):
            if behind != 0 and behind not in path:
                continue
            choices = [seq for seq, to in self.rewinds if to == behind and self._counts(seq, path)]
            first, end = behind + 1, self._end_of(self._branch_of(behind))
            if self._has_turn(first, end):
                choices.insert(0, first)
            on_path = [place for place, seq in enumerate(choices) if seq in path]
            if len(choices) > 1 and on_path:
                found[behind] = Siblings(tuple(choices), on_path[0])
        return found

    def begun(self) -> dict[int, list[tuple[int, int]]]:
        """By the number of an event the stretches of the branches that begin behind it."""
        found: dict[int, list[tuple[int, int]]] = {}
        for place, (seq, behind) in enumerate(self.rewinds):
            found.setdefault(behind, []).append((seq, self._end_of(place)))
        return found

    def left(self) -> dict[int, list[tuple[int, int]]]:
        """By the number of an event of the present path the stretches that go on behind it and are none of
        it, by 0 those that begin where the log does. What begins behind these is told by `begun`."""
        path = self.path()
        found = {
            place: [each for each in stretches if each[0] not in path]
            for place, stretches in self.begun().items()
            if place in path or place == 0
        }
        lasts = [last for _first, last in path.stretches[:-1]]
        if path.stretches and path.stretches[0][0] > 1:
            lasts.insert(0, 0)
        for last in lasts:
            end = self._end_of(self._branch_of(last))
            found.setdefault(last, []).extend([(last + 1, end)] if last < end else [])
        return found

    def tip(self, seq: int) -> int:
        """Where the newest dialogue that leads through event `seq` ends."""
        for place in range(len(self.rewinds) - 1, -2, -1):
            first, end = self.rewinds[place][0] if place >= 0 else 1, self._end_of(place)
            if seq in self.path(end) and (self._has_turn(first, end) or first <= seq <= end):
                return end
        return seq

    def _branch_of(self, seq: int) -> int:
        """The place among `rewinds` of the one that began the branch of `seq`; -1: the first branch."""
        return bisect_right(self.rewinds, seq, key=lambda rewind: rewind[0]) - 1

    def _end_of(self, place: int) -> int:
        return self.rewinds[place + 1][0] - 1 if place + 1 < len(self.rewinds) else self.last

    def _counts(self, seq: int, path: Path) -> bool:
        return seq in path or self._has_turn(seq, self._end_of(self._branch_of(seq)))

    def _has_turn(self, first: int, end: int) -> bool:
        place = bisect_right(self.turns, first - 1)
        return place < len(self.turns) and self.turns[place] <= end


def branches_in(entries: Sequence[Entry]) -> Branches:
    """Of a log that was read."""
    return Branches(
        tuple(
            (entry.seq, entry.event.behind) for entry in entries if isinstance(entry.event, Rewound)
        ),
        max((entry.seq for entry in entries), default=0),
        tuple(entry.seq for entry in entries if entry.event.type in TURN_TYPES),
    )


def on_path(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The part of a log, or of a part of it, that counts; all of it where nobody went back. What is not
    stored yet would be its end."""
    if not any(isinstance(entry.event, Rewound) for entry in entries):
        return entries
    path = branches_in(entries).path()
    return [
        entry
        for entry in entries
        if entry.seq in path or not entry.seq or holds_anywhere(entry.event)
    ]


def place_before(path: Sequence[Entry], index: int) -> int:
    """The number of the last event before `path[index]` that its dialogue rests on; 0: the beginning."""
    for entry in reversed(path[:index]):
        event = entry.event
        leads = event.type in LEAD_TYPES or event.between_turns or holds_anywhere(event)
        if not leads:
            return entry.seq
    return 0
