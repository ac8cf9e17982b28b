"""Answers that are made while they are sent, in threads of their own.

One that reads much neither holds up what else the server does in threads nor, where one person asks for
many, the exports of others. Who may have them is asked in `accounts.streaming`, what they are is the
subjects' part.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import AnyStr, TypeVar

from asgiref.sync import sync_to_async
from django.utils.translation import get_language, override

from jobs.connections import with_healthy_connections
from jobs.shares import Shares

T = TypeVar("T")

THREADS = 4
EACH = 2
"""Of these threads, how many make what one person asked for."""
GATHERED = 512 * 1024
"""Characters or bytes that are made for one hand-over, which costs a thread's turn and `check`."""

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="agentsite-stream")
_making = Shares(EACH)


def in_threads(
    pieces: Iterator[AnyStr], who: Hashable, check: Callable[[], None] = lambda: None
) -> AsyncIterator[AnyStr]:
    """The same pieces, gathered to some size, in one of the places of `who`, in the language of the caller.

    `check` is called before each hand-over, in the same thread, once they are made; what it raises ends them.
    """
    language = get_language()

    def next_ones() -> AnyStr | None:
        with override(language):
            made = _next_of(pieces)
            check()  # at the end too: what somebody may read no more is not over, it breaks off
            return made

    return _in_turn(partial(with_healthy_connections, next_ones), who)


async def _in_turn(made: Callable[[], AnyStr | None], who: Hashable) -> AsyncIterator[AnyStr]:
    while gathered := await _making.run(who, _in_thread, made):
        yield gathered


def _next_of(pieces: Iterator[AnyStr]) -> AnyStr | None:
    """As many as are `GATHERED`; None when there are no more."""
    gathered: list[AnyStr] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= GATHERED:
            break
    return gathered[0][:0].join(gathered) if gathered else None


async def _in_thread(function: Callable[[], T]) -> T:
    return await sync_to_async(function, thread_sensitive=False, executor=_threads)()
