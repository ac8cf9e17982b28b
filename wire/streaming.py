"""Answers that are made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import AnyStr

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest


def streamed(request: object, pieces: Iterator[AnyStr]) -> Iterator[AnyStr] | AsyncIterator[AnyStr]:
    """Them as the server of this request sends them one by one: under ASGI Django would first gather a plain
    iterator in memory."""
    given = getattr(request, "_request", request)  # REST framework's own has it inside
    return in_thread(pieces) if isinstance(given, ASGIRequest) else pieces


async def in_thread(pieces: Iterator[AnyStr]) -> AsyncIterator[AnyStr]:
    """The pieces of a plain iterator, each made in a thread where tables may be read."""
    advance = sync_to_async(lambda: next(pieces, None))
    while (piece := await advance()) is not None:
        yield piece
