"""What was copied out of a conversation goes when it is taken out of the log, in the same transaction.

An app that copies words of an event into rows of its own registers what removes them there (`forget_with`,
in its `ready()`); only `conversations.log.redact` has it done. One that has the log of another conversation
say them registers what finds them there (`follow_with`); `conversations.actions.redacting` takes them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.history import Entry
from harness.redacted import redacted

from .models import Conversation


@dataclass(frozen=True, slots=True)
class Removed:
    """What was taken out of one log. Copies are found by its ids; a text alone counts only where a whole
    field was made of it, and of nothing else."""

    conversation: Conversation
    """Held by the transaction, and with no run."""
    subject: str
    entries: tuple[Entry, ...]
    """The events as they were, with their words."""
    titles: frozenset[str]
    """What the conversation was called after them."""

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(entry.uid for entry in self.entries)

    def of(self, *kinds: type[Any]) -> dict[str, Any]:
        """Events of these classes, by their ids."""
        return {entry.uid: entry.event for entry in self.entries if isinstance(entry.event, kinds)}

    @property
    def anew(self) -> Removed:
        """Without what had no words left, or never any."""
        entries = (each for each in self.entries if redacted(each.event) != each.event)
        return replace(self, entries=tuple(entries))


Part = Callable[[Removed], None]
"""Called in the transaction that takes the words out; what it raises undoes that. It may lock rows of its own
app, of which nobody who holds them waits for a conversation."""

_parts: dict[str, Part] = {}


def forget_with(app: str, part: Part) -> None:
    """Have `part` remove what this app copied, from now on; one for each app."""
    _parts[app] = part


Place = tuple[Conversation, str]
"""Another conversation, and in its log the subject that says the same."""
Follower = Callable[[Removed], Iterable[Place]]
"""Reads alone. It is given only what had words, and is asked before copies are removed and behind that."""

BEGINNING = 500
"""Characters by which a text is known in what was made of it."""

_followers: dict[str, Follower] = {}


def follow_with(app: str, follower: Follower) -> None:
    """Have what `follower` finds taken out as well, from now on; one for each app."""
    _followers[app] = follower


def repeats(text: str, said: Iterable[str]) -> bool:
    """Whether `text`, which is known to be made of something of the kind, has one of these in it. Whatever
    makes such texts keeps `BEGINNING` of each."""
    beginnings = (each.strip()[:BEGINNING].strip() for each in said)
    return any(each and each in text for each in beginnings)


def elsewhere(removed: Removed) -> Iterator[Place]:
    """Where logs of other conversations say the same."""
    words = removed.anew
    for follower in _followers.values():
        yield from follower(words)


def forget(removed: Removed) -> None:
    for part in _parts.values():
        part(removed)
