"""Has a model read a stretch of a conversation, outside of any run.

What it may cost and what becomes of the answer is `actions.analysing`'s part.
"""

from __future__ import annotations

from functools import partial

from jobs.engine import engine
from spending.asking import ask_beside

from .actions import analysing


async def read_on(conversation_id: int) -> None:
    """Nothing where there is nothing new. A process that ends meanwhile leaves the row behind, which
    `analysing.settle_lost` counts."""
    claim = await engine.in_tool_thread(analysing.begin, conversation_id)
    if claim is not None:
        await ask_beside(
            choice=claim.choice,
            config=claim.config,
            request=claim.request,
            uid=claim.uid,
            ended=partial(analysing.end, claim),
        )
