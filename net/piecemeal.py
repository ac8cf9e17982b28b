"""Connections that are read a little at a time, with a turn for everybody else in between.

What a server sends is taken apart on the event loop: each byte may be a chunk of its own, or an answer
may begin with thousands of interim ones. So of what has arrived no more is taken at once than is soon
taken apart.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

AT_ONCE = 2 * 1024
"""Bytes."""


class Piecemeal(httpcore2.AnyIOBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(
            await super().connect_tcp(host, port, timeout, local_address, socket_options)
        )


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - the library's
        # What is here already is given without waiting.
        await asyncio.sleep(0)
        return await self._inner.read(min(max_bytes, AT_ONCE), timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the library's
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def piecemeal_socket(address: tuple[Any, ...]) -> socket.socket:
    """For clients that are given their sockets (aiohttp's): the loop turns to everybody between two readings
    of one. `address`: as `getaddrinfo` has it."""
    family, kind, protocol, *_where = address
    return _Sipping(family, kind, protocol)


class _Sipping(socket.socket):
    def recv(self, size: int, flags: int = 0, /) -> bytes:
        return super().recv(min(size, AT_ONCE), flags)

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0, /) -> int:
        return super().recv_into(buffer, min(size or len(buffer), AT_ONCE), flags)
