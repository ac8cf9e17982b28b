"""Servers that speak only HTTP with SSE, as the protocol had it before 2025-03-26."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport

from mcpservers.sessions import Listing, Sessions, Unreachable, Where, look_at
from tests.standins.mcp_server import served

TOKEN = "held-by-the-server-alone"


class Legacy:
    """Made with the official package; POST at its address is answered 405."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.deaf = False
        self.elsewhere = ""
        """Where it sends its client instead."""
        self._streams = SseServerTransport("/messages/")
        self._server: Server[Any] = Server(
            "Legacy", version="1", on_list_tools=_list, on_call_tool=_call
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        self.asked.append((scope["method"], scope["path"]))
        if headers.get(b"authorization") != f"Bearer {TOKEN}".encode():
            await _plain(send, 401)
        elif scope["path"] == "/messages/" and self.deaf:
            await _plain(send, 410)
        elif scope["path"] == "/messages/":
            await self._streams.handle_post_message(scope, receive, send)
        elif scope["method"] != "GET":
            await _plain(send, 405)
        elif self.elsewhere:
            await _plain(send, 200, f"event: endpoint\ndata: {self.elsewhere}\n\n")
        else:
            async with self._streams.connect_sse(scope, receive, send) as (heard, said):
                await self._server.run(heard, said, self._server.create_initialization_options())


async def _list(_context: Any, _params: Any) -> types.ListToolsResult:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema=schema)])


async def _call(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = str((params.arguments or {}).get("text", ""))
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"said {text}")])


async def _plain(send: Any, status: int, text: str = "") -> None:
    kind = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": text.encode()})


@pytest.fixture
def legacy(settings: Any) -> Iterator[tuple[Legacy, Where]]:
    held = Legacy()
    with served(held) as port:
        settings.AGENTSITE_MCP_PRIVATE_HOSTS = [f"127.0.0.1:{port}"]
        url = f"http://127.0.0.1:{port}/sse"
        yield held, Where(1, "sesn_1", url, {"Authorization": f"Bearer {TOKEN}"})


async def _keep(_listing: Listing) -> None:
    pass


def called(where: Where, *texts: str, before: Callable[[int], None] = lambda _at: None) -> Any:
    async def each() -> list[str]:
        sessions = Sessions()
        said = []
        try:
            for at, text in enumerate(texts):
                before(at)
                given = {"text": text}
                answer: Any = await sessions.call(
                    where, "echo", given, seconds=20.0, on_listing=_keep
                )
                said.append(answer.content[0].text)
        finally:
            await sessions.close()
        return said

    return asyncio.run(each())


def test_it_is_looked_at_and_called_over_one_stream(legacy: tuple[Legacy, Where]):
    server, where = legacy
    listing = asyncio.run(look_at(where))
    assert [tool.name for tool in listing.tools] == ["echo"]
    assert listing.software == "Legacy 1"
    server.asked.clear()
    assert called(where, "one", "two") == ["said one", "said two"]
    assert server.asked.count(("GET", "/sse")) == 1


def test_a_message_that_it_refuses_is_not_waited_for(legacy: tuple[Legacy, Where]):
    server, where = legacy

    def before(at: int) -> None:
        server.deaf = at == 1

    with pytest.raises(Unreachable, match="It answered 410"):
        called(where, "one", "two", before=before)


def test_it_sends_nobody_to_another_host(legacy: tuple[Legacy, Where]):
    server, where = legacy
    server.elsewhere = "http://127.0.0.2:9/messages/"
    with pytest.raises(Unreachable):
        called(where, "one")
    assert not [path for _method, path in server.asked if path != "/sse"]


def test_one_that_wants_a_token_is_not_tried_otherwise(legacy: tuple[Legacy, Where]):
    server, where = legacy
    with pytest.raises(Unreachable, match="other credentials"):
        called(Where(1, "sesn_1", where.url), "one")
    assert ("GET", "/sse") not in server.asked


def test_an_address_that_may_not_be_reached_is_not_tried_twice(
    legacy: tuple[Legacy, Where], settings: Any
):
    server, where = legacy
    settings.AGENTSITE_MCP_PRIVATE_HOSTS = []
    with pytest.raises(Unreachable):
        called(where, "one")
    assert server.asked == []
