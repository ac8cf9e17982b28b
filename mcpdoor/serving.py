"""The tools and resources as an MCP server for one person: made for a request, or for a process on stdio.

Stateless, so both eras of the protocol are answered alike and no process has to remember anybody.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import mcp_types as types
from asgiref.sync import sync_to_async
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from harness.errors import AgentError, Forbidden, Invalid, NotFound
from jobs.connections import give_back

from . import tools
from .tools import Principal

POLL_SECONDS = 0.25
MOST_WAITING = 8
"""Answers that one process waits for at once for one person: each looks at the tables again and again."""
_waiting: Counter[int] = Counter()

InThread = Callable[..., Awaitable[Any]]


async def in_thread(work: Callable[..., Any], *given: Any) -> Any:
    """Work with tables, in a thread that keeps no connection."""

    def do() -> Any:
        try:
            return work(*given)
        finally:
            give_back()

    return await sync_to_async(do, thread_sensitive=False)()


def server_for(who: Principal, run: InThread = in_thread) -> Server[Any]:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        mine = [each for each in tools.TOOLS if who.may(each.scope)]
        return types.ListToolsResult(tools=[_described(each) for each in mine])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            offered = next((each for each in tools.TOOLS if each.name == params.name), None)
            if offered is None:
                raise NotFound(f"There is no tool called {params.name[:60]}.")
            if not who.may(offered.scope):
                raise Forbidden(
                    "This token may not be used for this.",
                    hint=f"Make one with the scope “{offered.scope.value}”.",
                )
            state, seconds = await run(tools.perform, who, offered, params.arguments or {})
            state = await _waited(who, state, seconds, run)
        except AgentError as problem:
            field = problem.field if isinstance(problem, Invalid) else ""
            place = f"{field}: " if field else ""
            words = f"{place}{problem.message} {problem.hint}".strip()
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=words)],
                structured_content={"error": {"code": problem.code, "message": words}},
                is_error=True,
            )
        text = json.dumps(state, ensure_ascii=False, indent=1)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=state
        )

    async def list_resources(_context: Any, _params: Any) -> types.ListResourcesResult:
        rows = await run(tools.listed, who) if who.may(tools.READ) else []
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=address, name=title, mime_type="text/markdown")
                for address, title in rows
            ]
        )

    async def read_resource(
        _context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            if not who.may(tools.READ):
                raise NotFound("There is no such resource.")
            text = await run(tools.whole, who, str(params.uri))
        except AgentError as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem.message)) from None
        held = types.TextResourceContents(uri=str(params.uri), mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[held])

    return Server(
        "Agentsite",
        version="1",
        instructions="Agents of this site, to be asked and read. What they are asked goes on by itself.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


async def _waited(
    who: Principal, state: dict[str, Any], seconds: int, run: InThread
) -> dict[str, Any]:
    """Once the conversation rests or the time is up; at once where the person waits for enough already."""
    if seconds == 0 or _waiting[who.user.pk] >= MOST_WAITING:
        return state
    _waiting[who.user.pk] += 1
    try:
        return await _at_rest(who, state, monotonic() + seconds, run)
    finally:
        _waiting[who.user.pk] -= 1
        if not _waiting[who.user.pk]:
            del _waiting[who.user.pk]


async def _at_rest(
    who: Principal, state: dict[str, Any], end: float, run: InThread
) -> dict[str, Any]:
    while state.get("status") == "working" and monotonic() < end:
        await asyncio.sleep(min(POLL_SECONDS, max(end - monotonic(), 0.0)))
        state = await run(tools.state_of, who, state["conversation_id"])
    return state


def _described(each: tools.Offered) -> types.Tool:
    return types.Tool(
        name=each.name,
        title=each.title,
        description=each.description,
        input_schema=each.given.model_json_schema(),
        annotations=types.ToolAnnotations(read_only_hint=each.reads, destructive_hint=False),
    )
