"""The jobs of MCP servers: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import counting
from .actions.servers import LOOK
from .looking import look_soon


@job(LOOK)
async def look_at_mcp_server(server_id: int) -> None:
    await look_soon(server_id)


@job("mcpservers.prune", every="AGENTSITE_SWEEP_SECONDS")
async def forget_old_counts() -> None:
    await engine.in_database(counting.prune)
