"""Answers that are made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async


async def in_thread(pieces: Iterator[str]) -> AsyncIterator[str]:
    """The pieces of a plain iterator, each made in a thread where tables may be read."""
    advance = sync_to_async(lambda: next(pieces, None))
    while (piece := await advance()) is not None:
        yield piece
