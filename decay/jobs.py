"""The job of decay: a doorway without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions.passes import fade_next


@job("decay.fade", every="AGENTSITE_DECAY_SECONDS")
async def fade_what_nobody_uses() -> None:
    after: int | None = 0
    while after is not None:
        after = await engine.in_tool_thread(fade_next, after)
