"""Carries pushes: so many at once, until none is due."""

from __future__ import annotations

import asyncio
import logging

import httpx2

from jobs.engine import engine

from . import pushing
from .pushrequests import post, push_client

logger = logging.getLogger(__name__)


async def send_due() -> None:
    """Send what is due and nobody else sends, and keep what came of each."""
    async with push_client() as client:
        while True:
            taken, ready = await engine.in_tool_thread(pushing.claim_pushes)
            sending = (_send(client, claimed) for claimed in ready)
            # One that fails must not close the client under the others; it is due again after its lease.
            ends = await asyncio.gather(*sending, return_exceptions=True)
            for claimed, failure in zip(ready, ends, strict=True):
                if failure is not None:
                    logger.error("the push %s failed", claimed.push_id, exc_info=failure)
            if taken < pushing.AT_ONCE:
                return


async def _send(client: httpx2.AsyncClient, claimed: pushing.Claimed) -> None:
    answer = await post(client, claimed.endpoint, claimed.body, claimed.headers)
    await engine.in_database(pushing.record_push, claimed, answer)
