"""Asks the model for a title, outside of any run.

What it may cost and what becomes of the answer is `actions.naming`'s part.
"""

from __future__ import annotations

from functools import partial

from jobs.engine import engine
from spending.asking import ask_beside

from .actions import naming


async def write_title(conversation_id: int) -> None:
    """Nothing where the conversation needs none. A process that ends meanwhile leaves the row behind, which
    `naming.settle_lost` counts."""
    named = await engine.in_tool_thread(naming.begin, conversation_id)
    if named is not None:
        await ask_beside(
            choice=named.choice,
            config=named.config,
            request=named.request,
            uid=named.uid,
            ended=partial(naming.end, named.row),
        )
