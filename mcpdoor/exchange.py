"""One HTTP exchange of an MCP client: the official package's transport, carried by Django.

The answer is JSON. It is a stream of events where the transport begins one: a client that takes those is told
how far a call is, and its line is kept open while it waits. Hanging up ends the exchange and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, MutableMapping
from typing import Any

import mcp_types as types
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from reading.foreignjson import Unreadable, read_json

from .serving import server_for
from .tools import Principal

Message = MutableMapping[str, Any]
STREAM = "text/event-stream"
_OURS = frozenset({"authorization", "x-api-key", "cookie"})
"""Headers that are nobody's business behind the door."""


class _Streamed(StreamingHttpResponse):
    work: asyncio.Task[None]

    def close(self) -> None:
        # It may be let go before anybody has read of it.
        self.work.cancel()
        super().close()


class Exchange:
    def __init__(self, request: HttpRequest, who: Principal) -> None:
        self._body = request.body
        self._who = who
        self._scope: Message = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": request.scheme,
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in request.headers.items()
                if name.lower() not in _OURS
            ],
        }
        self._version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        self._takes_streams = STREAM in request.headers.get("accept", "")
        self._sent: asyncio.Queue[Message | None] = asyncio.Queue()
        self._taken = False

    async def answer(self) -> HttpResponseBase:
        message = _read(self._body)
        if (refusal := self._of_no_era(message)) is not None:
            return refusal
        work = asyncio.create_task(self._serve(message))
        try:
            return await self._begun(work)
        except BaseException:
            work.cancel()
            raise

    async def _begun(self, work: asyncio.Task[None]) -> HttpResponseBase:
        start = await self._sent.get()
        if start is None:
            await work
            raise RuntimeError("The transport gave no answer.")
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in start.get("headers", ())
            if name.lower() not in {b"content-length", b"transfer-encoding"}
        }
        answer: HttpResponseBase
        if headers.get("content-type", "").startswith(STREAM):
            answer = _Streamed(self._pieces(work), status=start["status"])
            answer.work = work
        else:
            whole = b"".join([piece async for piece in self._pieces(work)])
            answer = HttpResponse(whole, status=start["status"])
            if not whole:
                del answer["Content-Type"]
        for name, value in headers.items():
            answer[name] = value
        answer["Cache-Control"] = "no-store"
        answer["X-Accel-Buffering"] = "no"
        return answer

    async def _pieces(self, work: asyncio.Task[None]) -> AsyncIterator[bytes]:
        try:
            while (message := await self._sent.get()) is not None:
                if piece := message.get("body", b""):
                    yield bytes(piece)
            await work
        finally:
            work.cancel()

    async def _serve(self, message: Any) -> None:
        try:
            manager = StreamableHTTPSessionManager(
                server_for(self._who), json_response=not self._streams(message), stateless=True
            )
            async with manager.run():
                await manager.handle_request(self._scope, self._receive, self._sent.put)
        finally:
            self._sent.put_nowait(None)

    def _streams(self, message: Any) -> bool:
        """By the revisions before 2026-07-28 an answer is a stream or is none from its beginning on: a
        call's may have something to tell before it ends."""
        if not self._takes_streams:
            return False
        of_handshake = self._version is None or self._version in HANDSHAKE_PROTOCOL_VERSIONS
        return not of_handshake or (
            isinstance(message, dict) and message.get("method") == "tools/call"
        )

    async def _receive(self) -> Message:
        if self._taken:
            # Whoever hangs up cancels the whole exchange.
            await asyncio.Event().wait()
        self._taken = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    def _of_no_era(self, message: Any) -> HttpResponse | None:
        """A request of 2026-07-28 whose header says nothing, or another era, belongs to neither."""
        if self._version is not None and self._version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return None
        params = message.get("params") if isinstance(message, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(meta, dict) or types.PROTOCOL_VERSION_META_KEY not in meta:
            return None
        words = f"{MCP_PROTOCOL_VERSION_HEADER} header does not match the version that the request names"
        error = {"code": types.HEADER_MISMATCH, "message": words}
        body = {"jsonrpc": "2.0", "id": _id_of(message), "error": error}
        return JsonResponse(body, status=400, headers={"Cache-Control": "no-store"})


def _read(body: bytes) -> Any:
    """The door has measured it."""
    try:
        return read_json(body, limit=len(body) + 1)
    except Unreadable:
        return None


def _id_of(message: Mapping[str, Any]) -> Any:
    found = message.get("id")
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None
