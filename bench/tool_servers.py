"""Ten minimal MCP servers made with the official SDK, in one process, at `/0/mcp` to `/9/mcp`; a helper
process (`bench.commands`). Each is slower than the one before it by `STEP`, as if it were farther away.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server

COUNT = 10
STEP = 0.02
"""Seconds that an answer of the second server takes, that of the third twice as long, and so on."""


async def _list(_context: Any, _params: Any) -> types.ListToolsResult:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tool = types.Tool(name="echo", description="Says a text again.", input_schema=schema)
    return types.ListToolsResult(tools=[tool])


async def _call(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = (params.arguments or {}).get("text", "")
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


class _Telling(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(json.dumps({"port": port}) + "\n")
        sys.stdout.flush()


async def main() -> None:
    server: Any = Server("Bench", version="1", on_list_tools=_list, on_call_tool=_call)
    app = server.streamable_http_app()

    async def door(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            number, _slash, path = scope["path"].removeprefix("/").partition("/")
            await asyncio.sleep(int(number) * STEP)
            scope = {**scope, "path": f"/{path}", "raw_path": f"/{path}".encode()}
        await app(scope, receive, send)

    serving = _Telling(uvicorn.Config(door, host="127.0.0.1", port=0, log_config=None))
    running = asyncio.create_task(serving.serve())
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    serving.should_exit = True
    await running


if __name__ == "__main__":
    asyncio.run(main())
