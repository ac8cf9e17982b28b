"""What apps copied out of a conversation goes when it is taken out of the log, in the same transaction.

An app that copies words of an event into rows of its own registers what removes them there (`forget_with`,
in its `ready()`). Only `conversations.log.redact` has it done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.history import Entry

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


Part = Callable[[Removed], None]
"""Called in the transaction that takes the words out; what it raises undoes that. It may lock rows of its own
app, of which nobody who holds them waits for a conversation."""

_parts: dict[str, Part] = {}


def forget_with(app: str, part: Part) -> None:
    """Have `part` remove what this app copied, from now on; one for each app."""
    _parts[app] = part


def forget(removed: Removed) -> None:
    for part in _parts.values():
        part(removed)
