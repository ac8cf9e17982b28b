"""The moments of a run: right before and right behind each of its appends.

The run has decided what it appends and cannot see any more what is done right before; what is done
right behind is in the log before the run goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

import pytest

from conversations.journal import TableJournal
from harness.history import Entry
from jobs.engine import engine

When = Literal["before", "after"]
WHEN: tuple[When, ...] = ("before", "after")
Act = Callable[[], None]
Append = Callable[..., Awaitable[Sequence[Entry]]]


class Moments:
    """Counts the appends of all runs, and has something done at some of them."""

    def __init__(self) -> None:
        self.arm()

    def arm(
        self,
        acts: Mapping[tuple[int, When], Act] | None = None,
        *,
        behind: str = "",
        then: Act | None = None,
    ) -> None:
        """Have each of `acts` done at its append, counted from now, and `then` behind the first append
        of an event of the type `behind`. What they raise the append raises."""
        self.appends = 0
        self._acts = dict(acts or {})
        self._behind, self._then = behind, then

    async def _come_to(self, place: int, when: When) -> None:
        act = self._acts.pop((place, when), None)
        if act is not None:
            await engine.in_database(act)

    async def _come_behind(self, entries: Sequence[Entry]) -> None:
        if self._then is not None and any(entry.event.type == self._behind for entry in entries):
            then, self._then = self._then, None
            await engine.in_database(then)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("append", "append_if_unchanged"):
            monkeypatch.setattr(TableJournal, name, self._watched(getattr(TableJournal, name)))

    def _watched(self, real: Append) -> Append:
        async def append(journal: TableJournal, *entries: Entry) -> Sequence[Entry]:
            if not entries:
                return await real(journal)
            self.appends += 1
            place = self.appends
            await self._come_to(place, "before")
            news = await real(journal, *entries)
            await self._come_behind(entries)
            await self._come_to(place, "after")
            return news

        return append
