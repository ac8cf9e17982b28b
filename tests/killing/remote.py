"""The MCP server that is called by the conversation that is killed; a process of its own, which nobody kills.

Its tool asks a person before it counts. What it was asked and what it did are lines of the files that the
call itself names, so that one server serves every trial.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server

TOOL = "count"
QUESTION, STATE = "How many?", "state-of-the-counter"


async def _list(_context: Any, _params: Any) -> types.ListToolsResult:
    schema = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}
    tool = types.Tool(
        name=TOOL, description="Happens outside, and is counted.", input_schema=schema
    )
    return types.ListToolsResult(tools=[tool])


async def _call(_context: Any, params: types.CallToolRequestParams) -> Any:
    where = str((params.arguments or {})["where"])
    if params.input_responses is None:
        _note(f"{where}.asked", "asked")
        schema = {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        }
        form = types.ElicitRequestFormParams(message=QUESTION, requested_schema=schema)
        return types.InputRequiredResult(
            input_requests={"how": types.ElicitRequest(params=form)}, request_state=STATE
        )
    answer = params.input_responses["how"]
    if params.request_state != STATE or not isinstance(answer, types.ElicitResult):
        raise ValueError("This is no answer to what was asked.")
    _note(where, f"{answer.action} {answer.content}")
    return types.CallToolResult(content=[types.TextContent(type="text", text="counted")])


def _note(path: str, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def served() -> Iterator[int]:
    """At which port of loopback."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.killing.remote"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


class _Telling(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


if __name__ == "__main__":
    counter: Any = Server("Counter", version="1", on_list_tools=_list, on_call_tool=_call)
    app = counter.streamable_http_app()
    _Telling(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None)).run()
