"""The moments of a run: right before and right behind each of its appends.

The run has decided what it appends and cannot see any more what is done right before; what is done
right behind is in the log before the run goes on, or before it hears that it was stopped meanwhile: like
what is appended, which is then read from the log.
"""

from __future__ import annotations

import asyncio
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
            await _done(act)

    async def _come_behind(self, entries: Sequence[Entry]) -> None:
        if self._then is not None and any(entry.event.type == self._behind for entry in entries):
            then, self._then = self._then, None
            await _done(then)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Within what the journal takes for the writing: a run that is stopped behind this, and before it
        # has taken in what it appended, would take it for unwritten, which none can be.
        monkeypatch.setattr(TableJournal, "_append", self._watched(TableJournal._append))

    def _watched(self, real: Append) -> Append:
        async def append(
            journal: TableJournal, entries: Sequence[Entry], *, if_unchanged: bool = False
        ) -> Sequence[Entry]:
            if not entries:
                return await real(journal, entries, if_unchanged=if_unchanged)
            self.appends += 1
            place = self.appends
            await self._come_to(place, "before")
            news = await real(journal, entries, if_unchanged=if_unchanged)
            await self._come_behind(entries)
            await self._come_to(place, "after")
            return news

        return append


async def _done(act: Act) -> None:
    """Also where the run is stopped by what is done."""
    work = asyncio.ensure_future(engine.in_database(act))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
