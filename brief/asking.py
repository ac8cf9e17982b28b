"""Asks the model for the short text of a brief. What it may cost and what becomes of the answer is
`writing`'s part."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from jobs.engine import engine
from spending.asking import ask_beside

from . import writing
from .models import Brief

logger = logging.getLogger(__name__)

AT_ONCE = 8


async def write_text(brief_id: int) -> None:
    """Nothing where no model is to be asked. A process that ends meanwhile leaves the claim behind, after
    which `writing.settle_lost` has the brief go out as it is."""
    claim = await engine.in_tool_thread(writing.begin, brief_id)
    if claim is not None:
        await ask_beside(
            choice=claim.choice,
            config=claim.config,
            request=claim.request,
            uid=claim.uid,
            ended=partial(writing.end, claim),
        )


async def write_wanted() -> None:
    """What was to be written and nobody was asked for, and what nobody will answer."""
    wanted = await engine.in_tool_thread(_wanted)
    for begin in range(0, len(wanted), AT_ONCE):
        some = wanted[begin : begin + AT_ONCE]
        # One that goes wrong must not keep the others waiting; it goes out without a text.
        ends = await asyncio.gather(*map(write_text, some), return_exceptions=True)
        for brief_id, failure in zip(some, ends, strict=True):
            if failure is not None:
                logger.error("the text of brief %s failed", brief_id, exc_info=failure)
    await engine.in_tool_thread(writing.settle_lost)


def _wanted() -> list[int]:
    return list(Brief.objects.to_write().values_list("pk", flat=True)[: AT_ONCE * AT_ONCE])
