"""The jobs of prompts: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import pulling


@job("prompts.pull", every="AGENTSITE_PROMPT_SOURCE_SECONDS")
async def pull() -> None:
    await engine.in_tool_thread(pulling.pull_due)
