"""One HTTP exchange of an MCP client: the official package's transport, carried by Django.

The answer is JSON. It is a stream of events where the transport begins one: a client that takes those is told
how far a call is, and its line is kept open while it waits. Hanging up ends the exchange and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, MutableMapping, Sequence
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

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

from .lookups import EVERY
from .serving import server_for_all, speaking_for
from .tools import Principal

Message = MutableMapping[str, Any]
STREAM = "text/event-stream"
_OURS = frozenset({"authorization", "x-api-key", "cookie"})
"""Headers that are nobody's business behind the door."""
_TELLING_NOTHING = frozenset(each.name for each in EVERY if not (each.waits or each.begins))


class _Streamed(StreamingHttpResponse):
    work: asyncio.Task[None]

    def close(self) -> None:
        # It may be let go before anybody has read of it.
        self.work.cancel()
        super().close()


class Exchange:
    def __init__(self, request: HttpRequest, who: Principal, message: Any) -> None:
        """`message`: what the body says."""
        self._body = request.body
        self._message = message
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
        if (refusal := self._of_no_era(self._message)) is not None:
            return refusal
        if not self._streams(self._message):
            return await self._whole()
        work = asyncio.create_task(self._serve_piecewise())
        try:
            return await self._begun(work)
        except BaseException:
            work.cancel()
            raise

    async def _whole(self) -> HttpResponseBase:
        """Where nothing is told before the end, nobody has to wait beside the transport for it."""
        if self._version is None or self._version in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._serve(json_response=True)
        else:
            # Since then a transport begins nothing beside the request, so that one manager serves all.
            manager = await _manager_here()
            with speaking_for(self._who):
                await manager.handle_request(self._scope, self._receive, self._sent.put)
        self._sent.put_nowait(None)
        start = await self._sent.get()
        if start is None:
            raise RuntimeError("The transport gave no answer.")
        pieces = []
        while (message := await self._sent.get()) is not None:
            pieces.append(bytes(message.get("body", b"")))
        headers = _headers_of(start)
        return _with_headers(_joined(pieces, start["status"]), headers)

    async def _begun(self, work: asyncio.Task[None]) -> HttpResponseBase:
        start = await self._sent.get()
        if start is None:
            await work
            raise RuntimeError("The transport gave no answer.")
        headers = _headers_of(start)
        answer: HttpResponseBase
        if headers.get("content-type", "").startswith(STREAM):
            answer = _Streamed(self._pieces(work), status=start["status"])
            answer.work = work
        else:
            answer = _joined([piece async for piece in self._pieces(work)], start["status"])
        return _with_headers(answer, headers)

    async def _pieces(self, work: asyncio.Task[None]) -> AsyncIterator[bytes]:
        try:
            while (message := await self._sent.get()) is not None:
                if piece := message.get("body", b""):
                    yield bytes(piece)
            await work
        finally:
            work.cancel()

    async def _serve_piecewise(self) -> None:
        try:
            await self._serve(json_response=False)
        finally:
            self._sent.put_nowait(None)

    async def _serve(self, *, json_response: bool) -> None:
        manager = StreamableHTTPSessionManager(
            server_for_all(), json_response=json_response, stateless=True
        )
        with speaking_for(self._who):
            async with manager.run():
                await manager.handle_request(self._scope, self._receive, self._sent.put)

    def _streams(self, message: Any) -> bool:
        """By the revisions before 2026-07-28 an answer is a stream or is none from its beginning on: a
        call's may have something to tell before it ends. By those since, one begins with what is told; calls
        that never tell anything are spared what it takes."""
        if not self._takes_streams:
            return False
        is_call = isinstance(message, dict) and message.get("method") == "tools/call"
        if self._version is None or self._version in HANDSHAKE_PROTOCOL_VERSIONS:
            return is_call
        params = message.get("params") if is_call else None
        return not (isinstance(params, dict) and params.get("name") in _TELLING_NOTHING)

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


class _Manager:
    """One of a loop, which is run beside all requests."""

    def __init__(self) -> None:
        self.manager = StreamableHTTPSessionManager(
            server_for_all(), json_response=True, stateless=True
        )
        self.runs = asyncio.Event()
        # Nobody's request: what was bound for the first one is not for those that come after.
        self.work = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def _run(self) -> None:
        async with self.manager.run():
            self.runs.set()
            await asyncio.Event().wait()


_managers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Manager] = WeakKeyDictionary()


async def _manager_here() -> StreamableHTTPSessionManager:
    """This loop's, for answers that are whole; made anew should it ever have ended."""
    loop = asyncio.get_running_loop()
    held = _managers.get(loop)
    if held is None or held.work.done():
        held = _managers[loop] = _Manager()
    await held.runs.wait()
    return held.manager


def _headers_of(start: Message) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in start.get("headers", ())
        if name.lower() not in {b"content-length", b"transfer-encoding"}
    }


def _joined(pieces: Sequence[bytes], status: int) -> HttpResponse:
    answer = HttpResponse(b"".join(pieces), status=status)
    if not answer.content:
        del answer["Content-Type"]
    return answer


def _with_headers(answer: HttpResponseBase, headers: Mapping[str, str]) -> HttpResponseBase:
    for name, value in headers.items():
        answer[name] = value
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


def _id_of(message: Mapping[str, Any]) -> Any:
    found = message.get("id")
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None
