"""The jobs of MCP servers: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions.servers import LOOK, look_by_id


@job(LOOK)
async def look_at_mcp_server(server_id: int) -> None:
    await engine.in_tool_thread(look_by_id, server_id)
