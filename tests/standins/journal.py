"""A journal in memory, with the durability points of a real one: for tests and evals.

What it is made with is known to the run; what comes later is returned by the run's appends.

`before_append` may add entries of others (a person's message, an interrupt) or raise, at any chosen
append: that is how tests interrupt, race and kill a run at each commit point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.events import Event
from harness.history import Entry


class MemoryJournal:
    def __init__(
        self,
        entries: Sequence[Entry] = (),
        before_append: Callable[[MemoryJournal, Sequence[Entry]], None] | None = None,
    ) -> None:
        self.entries: list[Entry] = []
        self.appends = 0
        self._given = 0
        self.hook = before_append
        for entry in entries:
            self._store(entry)
        self._given = len(self.entries)

    async def append(self, *entries: Entry) -> Sequence[Entry]:
        if entries:
            self.appends += 1
            if self.hook:
                self.hook(self, entries)
        for entry in entries:
            self._store(entry)
        return self._news()

    async def append_if_unchanged(self, *entries: Entry) -> Sequence[Entry]:
        self.appends += 1
        if self.hook:
            self.hook(self, entries)
        if self._given == len(self.entries):
            for entry in entries:
                self._store(entry)
        return self._news()

    def _news(self) -> Sequence[Entry]:
        news = self.entries[self._given :]
        self._given = len(self.entries)
        return news

    def post(self, *events: Event) -> list[Entry]:
        """Store events of somebody else; the run sees them at its next append."""
        return [self._store(Entry.of(event)) for event in events]

    @property
    def events(self) -> list[Event]:
        return [entry.event for entry in self.entries]

    @property
    def types(self) -> list[str]:
        return [entry.event.type for entry in self.entries]

    def reopened(self) -> MemoryJournal:
        """The same log as a new process finds it."""
        return MemoryJournal(self.entries)

    def _store(self, entry: Entry) -> Entry:
        numbered = replace(entry, seq=len(self.entries) + 1)
        self.entries.append(numbered)
        return numbered
