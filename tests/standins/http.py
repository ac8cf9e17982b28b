"""A loopback HTTP/1.1 server in plain asyncio: enough for streaming answers, and fast.

What is answered is the business of the handler (`tests.standins.messages_api`). Not for the open
network: it binds 127.0.0.1 only and knows neither TLS nor compression.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

HOST = "127.0.0.1"

_BODY_LIMIT = 64 * 1024 * 1024
_FLUSH_AT = 64 * 1024
_END = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class ClientGone(Exception):
    """The client closed the connection before its answer was complete."""


class CutConnection(Exception):
    """Raised by a handler to drop the connection without another byte."""


class Exchange:
    """One answer being written. `fragment` bytes at a time when set, to split it at odd places."""

    def __init__(self, writer: asyncio.StreamWriter, fragment: int) -> None:
        self._writer = writer
        self._fragment = fragment
        self._buffer = bytearray()
        self._streaming = False

    async def answer(
        self, status: int, body: Any, headers: Mapping[str, str] | None = None
    ) -> None:
        """A whole answer; anything but bytes is sent as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = {"content-type": "application/json", "content-length": str(len(raw))}
        self._head(status, head | dict(headers or {}))
        self._buffer += raw
        await self.flush()

    def start_stream(self, headers: Mapping[str, str]) -> None:
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        self._head(200, head | dict(headers))
        self._streaming = True

    async def send(self, data: bytes) -> None:
        """Queue a piece of the stream; it leaves with the next `flush`, or when enough has gathered."""
        if not data:
            return  # an empty chunk would end the stream
        self._buffer += b"%x\r\n%b\r\n" % (len(data), data)
        if len(self._buffer) >= _FLUSH_AT:
            await self.flush()

    async def finish(self) -> None:
        if self._streaming:
            self._buffer += _END
        await self.flush()

    async def flush(self) -> None:
        data, self._buffer = self._buffer, bytearray()
        if not data:
            return
        try:
            if not self._fragment:
                self._writer.write(data)
                await self._writer.drain()
                return
            for start in range(0, len(data), self._fragment):
                self._writer.write(bytes(data[start : start + self._fragment]))
                await self._writer.drain()
                await asyncio.sleep(0)
        except ConnectionError:
            raise ClientGone from None

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        self._buffer += ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


Handler = Callable[[HttpRequest, Exchange], Awaitable[None]]


class HttpServer:
    """Serves `handler` on 127.0.0.1.

    `connections` counts those accepted, `closed_early` the answers whose client hung up before their
    end.
    """

    def __init__(self, handler: Handler, *, port: int = 0, fragment: int = 0) -> None:
        self._handler = handler
        self._port = port
        self._fragment = fragment
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.closed_early = 0

    @property
    def port(self) -> int:
        if self._server is None:
            return self._port
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, HOST, self._port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def serve_forever(self) -> None:
        assert self._server is not None, "start() comes first"
        await self._server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        try:
            peeked = b""
            while (request := await _read(reader, peeked)) is not None:
                peeked = await self._serve(request, reader, writer)
        except (CutConnection, ConnectionError, asyncio.IncompleteReadError):
            writer.transport.abort()
        except ClientGone:
            self.closed_early += 1
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(
        self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        """Let the handler answer while watching whether the client is still there.

        Returns what the watching took from the connection's next request.
        """
        answering = asyncio.ensure_future(self._handler(request, Exchange(writer, self._fragment)))
        watching = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and not watching.result():
                raise ClientGone
            await answering
            return watching.result() if watching.done() else b""
        finally:
            for task in (answering, watching):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task


async def _read(reader: asyncio.StreamReader, peeked: bytes) -> HttpRequest | None:
    """The connection's next request, which begins with `peeked`; None when the client is done."""
    try:
        head = peeked + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *rest = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in rest if line)
    }
    length = min(int(headers.get("content-length", "0")), _BODY_LIMIT)
    body = await reader.readexactly(length)
    return HttpRequest(method, target.partition("?")[0], headers, body)
