"""An MCP server on loopback, made with the official package, whose tools and answers a test changes while it
runs; and the doors at which it and the one who guards it are reached.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server

from tests.patience import until
from tests.standins.authorisation import AuthorisationServer, Reply

Door = Callable[[Any, Any, Any], Awaitable[None]]
Answer = Callable[[dict[str, Any]], Awaitable[types.CallToolResult]]
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def said(text: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


class TaskParams(types.RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


@dataclass
class Remote:
    """A server whose tools and answers a test changes while it runs."""

    url: str = ""
    tools: dict[str, types.Tool] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    asking: dict[str, Callable[[types.CallToolRequestParams], Any]] = field(default_factory=dict)
    """In place of an answer: what the whole request brings."""
    tasks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """How a task stands each time it is looked at; the last stays."""
    updated: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """Tasks that were cancelled."""
    called: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    """What each call brought beside its arguments (`_meta`)."""
    headers: list[dict[str, str]] = field(default_factory=list)
    cancelled: int = 0
    of_before: bool = False
    """It knows only the revisions with a handshake."""
    guard: AuthorisationServer | None = None
    """Who gives the tokens that it wants; None: it wants none."""

    def offer(
        self,
        name: str,
        answer: Answer | None = None,
        *,
        description: str = "Says a text again.",
        schema: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        self.tools[name] = types.Tool(
            name=name, description=description, input_schema=schema or TEXT, **more
        )
        self.answers[name] = answer or _echo

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(self.tools.values()))

    async def call_tool(self, _context: Any, params: types.CallToolRequestParams) -> Any:
        self.called.append((params.name, dict(params.arguments or {})))
        self.told.append(dict(params.meta or {}))
        if params.name in self.asking:
            return self.asking[params.name](params)
        try:
            return await self.answers[params.name](dict(params.arguments or {}))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def get_task(self, _context: Any, params: Any) -> dict[str, Any]:
        stands = self.tasks[params.task_id]
        now = stands.pop(0) if len(stands) > 1 else stands[0]
        return {"resultType": "complete", "taskId": params.task_id, "pollIntervalMs": 100, **now}

    async def update_task(self, _context: Any, params: Any) -> dict[str, Any]:
        self.updated.append((params.task_id, params.input_responses))
        return {"resultType": "complete"}

    async def cancel_task(self, _context: Any, params: Any) -> dict[str, Any]:
        self.ended.append(params.task_id)
        return {"resultType": "complete"}


async def _echo(given: dict[str, Any]) -> types.CallToolResult:
    return said(f"you said {given['text']}")


def door_of(held: Remote) -> Door:
    """An ASGI application that is `held`."""
    server: Any = Server("Stand-in", version="3", on_list_tools=held.list_tools,
                         on_call_tool=held.call_tool)  # fmt: skip
    for name, params, handle in (
        ("tasks/get", TaskParams, held.get_task),
        ("tasks/update", UpdateParams, held.update_task),
        ("tasks/cancel", TaskParams, held.cancel_task),
    ):
        server.add_request_handler(name, params, handle)
    app = server.streamable_http_app()

    async def door(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = _headers_of(scope)
            if held.guard and (refusal := held.guard.refusal(scope["path"], headers)):
                await _answer(send, refusal)
                return
            held.headers.append(headers)
            newer = held.headers[-1].get("mcp-protocol-version") == "2026-07-28"
            if held.of_before and newer:
                await send({"type": "http.response.start", "status": 400, "headers": []})
                await send({"type": "http.response.body", "body": b"Bad Request"})
                return
        await app(scope, receive, send)

    return door


def door_of_guard(held: AuthorisationServer) -> Door:
    async def door(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            body, more = b"", True
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
            path, query = scope["path"], scope["query_string"].decode()
            if path == "/authorize":
                path = f"{path}?{query}"
            await _answer(send, held.speak(scope["method"], path, _headers_of(scope), body))

    return door


@contextmanager
def served(app: Any, port: int = 0) -> Iterator[int]:
    """At which port."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port,
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    serving = uvicorn.Server(config)
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    until(lambda: serving.started)
    yield serving.servers[0].sockets[0].getsockname()[1]
    serving.should_exit = True
    thread.join(10)


def _headers_of(scope: Any) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in scope["headers"]}


async def _answer(send: Any, reply: Reply) -> None:
    status, headers, body = reply
    given = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    page = isinstance(body, str)
    given.append((b"content-type", b"text/html" if page else b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": given})
    sent = body if page else json.dumps(body)
    await send({"type": "http.response.body", "body": sent.encode()})
