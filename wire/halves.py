"""Views in two halves: what reads tables first, in a thread, and what it leaves to be awaited on the loop.

`agentsite.pages` has the first half done in the thread in which middleware is done, so a request changes
over to a thread once. Whoever knows nothing of halves calls the view as any coroutine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from jobs.connections import with_healthy_connections

Rest = Callable[[], Awaitable[HttpResponseBase]]
First = Callable[[HttpRequest], HttpResponseBase | Rest]
"""What is said at once, or what says it once it is awaited."""


def in_halves(first: First) -> Callable[..., Any]:
    async def view(request: HttpRequest) -> HttpResponseBase:
        work = partial(with_healthy_connections, partial(first, request))
        found = await asyncio.to_thread(work)
        return found if isinstance(found, HttpResponseBase) else await found()

    view.first = first  # type: ignore[attr-defined]
    return view


def first_half(view: Any) -> First | None:
    """None: it is no view in halves."""
    found: First | None = getattr(view, "first", None)
    return found
