"""The jobs of memory in conversations: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .mounted import FOLLOW, follow_on


@job(FOLLOW)
async def follow_a_folder(attached: int) -> None:
    await engine.in_tool_thread(follow_on, attached)
