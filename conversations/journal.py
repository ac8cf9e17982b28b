"""The harness's journal over the events table, for one run; and many runs' appends in one commit.

A commit costs about the same for one event as for fifty. So plain events of runs that come while one
commit is under way go into the next one together; nobody waits for company. Events that change more
than the log, and whatever does not fit in, are stored by themselves. What is stored, and whether a run
still may, is `log`'s part.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TypeVar

from harness.history import Entry
from jobs.engine import engine
from jobs.metrics import APPEND_SECONDS

from . import log
from .models import Run
from .projections import NotStored

logger = logging.getLogger(__name__)

T = TypeVar("T")

AT_ONCE = 200
"""Appends of one commit at most, so that none is kept waiting by a crowd."""


class TableJournal:
    """A `harness.ports.Journal`; used on one event loop."""

    def __init__(self, conversation_id: int, run: Run, last_seq: int) -> None:
        self._conversation_id = conversation_id
        self._run = run
        self._last_seq = last_seq
        self._one_at_a_time = asyncio.Lock()

    def known_seq(self) -> int:
        return self._last_seq

    async def append(self, *entries: Entry) -> Sequence[Entry]:
        # In order and one by one: what is returned is folded before the next call returns.
        async with self._one_at_a_time:
            with APPEND_SECONDS.time():
                news = await self._append(entries)
            return self._remember(news)

    async def append_if_unchanged(self, *entries: Entry) -> Sequence[Entry]:
        async with self._one_at_a_time:
            with APPEND_SECONDS.time():
                news = await self._append(entries, if_unchanged=True)
            return self._remember(news)

    def _remember(self, news: Sequence[Entry]) -> Sequence[Entry]:
        if news:
            self._last_seq = news[-1].seq
        return news

    async def _append(
        self, entries: Sequence[Entry], *, if_unchanged: bool = False
    ) -> Sequence[Entry]:
        if entries and all(entry.event.plain for entry in entries):
            expected = self._last_seq if if_unchanged else None
            stored = await _to_its_end(_together.append(log.Asked(self._run, entries, expected)))
            if stored is not None:
                if stored.first_seq == self._last_seq + 1:
                    return stored.of(entries)
                entries = ()  # others came in between: read theirs and ours
        work = engine.in_database(
            store_if_unchanged if if_unchanged else store,
            self._conversation_id,
            self._run,
            entries,
            self._last_seq,
        )
        return await _to_its_end(asyncio.ensure_future(work))


async def _to_its_end(work: asyncio.Future[T]) -> T:
    """Its result; who is cancelled meanwhile goes on only when it is over: a thread that writes cannot
    be stopped, and what comes next must find in the log what it wrote."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


def store(conversation_id: int, run: Run, entries: Sequence[Entry], known_seq: int) -> list[Entry]:
    """Append, and return all that the log gained behind `known_seq`, ours and others'."""
    if entries:
        try:
            rows = log.append(conversation_id, entries, run=run)
        except NotStored as refusal:
            refusal.note(conversation_id)
            raise
        if rows[0].seq == known_seq + 1:
            return log.Stored(rows[0].seq, rows[0].created_at).of(entries)
    return log.entries_after(conversation_id, known_seq)


def store_if_unchanged(
    conversation_id: int, run: Run, entries: Sequence[Entry], known_seq: int
) -> list[Entry]:
    """`store`, but only while `known_seq` is the log's last number: otherwise only what came behind it
    is returned. A budget that refuses is told to nobody but the caller."""
    rows = log.append(conversation_id, entries, run=run, expected_seq=known_seq)
    if rows:
        return log.Stored(rows[0].seq, rows[0].created_at).of(entries)
    return log.entries_after(conversation_id, known_seq)


Answer = log.Stored | None


class _Together:
    """Brings appends of many runs into the log, one commit at a time; used on one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[log.Asked, asyncio.Future[Answer]]] = []
        self._work: asyncio.Task[None] | None = None

    def append(self, asked: log.Asked) -> asyncio.Future[Answer]:
        """Where the entries stand; None when they must be stored by themselves. Raises `LeaseLost`."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the engine was stopped and started again
            self._loop, self._waiting, self._work = loop, [], None
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((asked, answer))
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._store_all())
        return answer

    async def _store_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            await self._store(batch)

    async def _store(self, batch: Sequence[tuple[log.Asked, asyncio.Future[Answer]]]) -> None:
        answers: Sequence[log.Stored | Exception | None]
        try:
            answers = await engine.in_database(
                log.append_together, [asked for asked, _answer in batch]
            )
        except Exception:
            # One that cannot be stored must not keep the others out: each tries by itself.
            logger.warning("%d appends are tried one by one", len(batch), exc_info=True)
            answers = [None] * len(batch)
        for (_asked, waiting), answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)


_together = _Together()
"""The process's own."""
