"""An MCP server made with the official package, as people write them. Runs inside a sandbox."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("Counter")
_counts: dict[str, int] = {}


@server.tool()
def count(name: str) -> int:
    """Counts how often it was asked for a name."""
    _counts[name] = _counts.get(name, 0) + 1
    return _counts[name]


if __name__ == "__main__":
    server.run()
