"""The jobs of accounts: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions import own_account


@job(own_account.DELETE, every="AGENTSITE_SWEEP_SECONDS")
async def delete_closed_accounts() -> None:
    await engine.in_tool_thread(own_account.delete_closed)
