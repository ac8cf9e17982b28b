"""The job of retention: a doorway without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions.deleting import delete_expired


@job("retention.delete", every="AGENTSITE_RETENTION_SECONDS")
async def delete_what_expired() -> None:
    while await engine.in_tool_thread(delete_expired):
        pass
