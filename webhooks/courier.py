"""Carries deliveries: so many at once, and no endpoint holds up the others."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from weakref import WeakKeyDictionary

from django.conf import settings

from jobs.engine import engine

from . import deliveries
from .requests import Outcome, post


class _Gates:
    """Who waits here has claimed nothing yet, so that waiting costs no attempt."""

    def __init__(self) -> None:
        at_once = max(1, settings.AGENTSITE_WEBHOOK_CONCURRENCY)
        self.all = asyncio.Semaphore(at_once)
        self.of_endpoint: defaultdict[int, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(max(1, at_once // 4))
        )


_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, _Gates] = WeakKeyDictionary()


async def deliver(delivery_id: int, endpoint_id: int) -> None:
    """Make one attempt at a due delivery, if nobody else does, and keep what came of it."""
    gates = _gates.setdefault(asyncio.get_running_loop(), _Gates())
    # The endpoint's first: who waits for a slow one must not hold a place of the others.
    async with gates.of_endpoint[endpoint_id], gates.all:
        claimed = await engine.in_database(deliveries.claim, delivery_id)
        if claimed is None:
            return
        if claimed.headers:
            outcome = await post(claimed.url, claimed.body.encode(), claimed.headers)
        else:
            outcome = Outcome(code="secret", problem=claimed.problem)
        await engine.in_database(deliveries.record, claimed, outcome)
