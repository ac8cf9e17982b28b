"""A WebSocket client that costs next to nothing, so that one core can play hundreds of browsers.

Enough of RFC 6455 to talk to one's own server: no compression, no fragments. For correctness there
are the browser tests.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from typing import Any, cast

import orjson


class Closed(Exception):
    """The server closed the connection."""


class Socket(asyncio.Protocol):
    """`await open_socket(...)`, then `await receive()` for frames and `send()`."""

    def __init__(self, host: str, path: str, headers: Mapping[str, str]) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            + "\r\n"
        ).encode()
        self._data = bytearray()
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._is_open = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by name
        self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._frames.put_nowait(None)
        if not self.opened.done():
            self.opened.set_exception(Closed("refused"))

    def data_received(self, data: bytes) -> None:
        held = self._data
        held += data
        if not self._is_open:
            end = held.find(b"\r\n\r\n")
            if end < 0:
                return
            status = bytes(held[: held.find(b"\r\n")]).decode("latin-1")
            if " 101 " not in status:
                self.opened.set_exception(Closed(status))
                self._transport.close()
                return
            del held[: end + 4]
            self._is_open = True
            self.opened.set_result(None)
        start, size = 0, len(held)
        while size - start >= 2:
            length, head = held[start + 1], 2
            if length == 126:
                length, head = int.from_bytes(held[start + 2 : start + 4]), 4
            elif length == 127:
                length, head = int.from_bytes(held[start + 2 : start + 10]), 10
            if size - start < head + length:
                break
            payload = bytes(held[start + head : start + head + length])
            self._take(held[start] & 15, payload)
            start += head + length
        del held[:start]

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == 1:
            self._frames.put_nowait(payload)
        elif kind == 9:
            self._write(10, payload)
        elif kind == 8:
            self._transport.close()

    def _write(self, kind: int, payload: bytes) -> None:
        # Masked with zeros: a mask is demanded, its value is free.
        length = len(payload)
        if length < 126:
            head = bytes([0x80 | kind, 0x80 | length])
        else:
            head = bytes([0x80 | kind, 0x80 | 126]) + length.to_bytes(2)
        self._transport.write(head + b"\0\0\0\0" + payload)

    def send(self, frame: dict[str, Any]) -> None:
        self._write(1, orjson.dumps(frame))

    async def receive(self) -> dict[str, Any]:
        payload = await self._frames.get()
        if payload is None:
            raise Closed("the connection was closed")
        frame: dict[str, Any] = orjson.loads(payload)
        return frame

    def close(self) -> None:
        self._transport.abort()


async def open_socket(
    port: int, path: str, cookie: str = "", *, headers: Mapping[str, str] | None = None
) -> Socket:
    """Connected and accepted; raises Closed where the server refuses.

    With a cookie a browser's, which says where its page came from; else a program's.
    """
    host = f"127.0.0.1:{port}"
    shown = {**(headers or {})}
    if cookie:
        shown |= {"Origin": f"http://{host}", "Cookie": cookie}
    loop = asyncio.get_running_loop()
    _transport, socket = await loop.create_connection(
        lambda: Socket(host, path, shown), "127.0.0.1", port
    )
    await socket.opened
    return socket
