"""An HTTP client that connects only where a judge lets it: for addresses that people typed in.

Names are looked up and judged at every connection, so one that changes its mind in between gains
nothing. Redirects are not followed. Answers are bounded, each has one time to end in, and they are taken
only as they are: one that is compressed may unfold to anything, and by the character set that one names its
text is decoded. Where the operator has set a proxy for
everything, it decides where it connects to.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import cache

import httpcore2
import httpx2

from net.addresses import parse_address
from net.lookups import Judge, UnknownHost, judged_addresses
from net.piecemeal import Piecemeal
from reading.charsets import plain_type

LOOK_UP_SECONDS = 10.0
MOST_BYTES = 64 * 1024 * 1024
"""Of one answer: more than the longest reply of a model takes, told in the smallest pieces."""
MOST_OF_A_REFUSAL = 256 * 1024
"""Of an answer that is an error, which clients read whole."""
MOST_COOKIES = 50
"""Of one answer. The client reads each of them, though hardly anybody asks for one: of more none is kept."""


@cache
def _trusted() -> ssl.SSLContext:
    """Whom this process trusts. Reading it takes some 50 ms, for which all runs would wait at each client."""
    return httpx2.create_ssl_context()


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """Lets through what the judge raises, having connected to nothing."""

    def __init__(
        self,
        judge: Judge,
        *,
        limits: httpx2.Limits,
        seconds: float | None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`seconds`: of one request, to the last byte of its answer; None: somebody else ends it."""
        super().__init__(limits=limits, verify=_trusted())
        # Its own pool, which can be given no other way to read.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_trusted(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Piecemeal(),
        )
        self._judge = judge
        self._seconds = seconds
        self._most = most_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._seconds is None:
            return await self._connected(request, None)
        end = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(end):
                return await self._connected(request, end)
        except TimeoutError:
            raise _too_slow() from None

    async def _connected(self, request: httpx2.Request, end: float | None) -> httpx2.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            *others, last = await judged_addresses(host, port, self._judge, seconds=LOOK_UP_SECONDS)
        except UnknownHost as problem:
            raise httpx2.ConnectError(f"The name {host} cannot be resolved.") from problem
        request.headers["Accept-Encoding"] = "identity"
        for address in others:
            try:
                return await self._bounded(_aimed(request, host, address), end)
            except httpx2.ConnectError:
                continue  # as every client does that is given several
        return await self._bounded(_aimed(request, host, last), end)

    async def _bounded(self, request: httpx2.Request, end: float | None) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        if answer.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            await answer.aclose()
            raise httpx2.RemoteProtocolError("The answer is compressed, which was not asked for.")
        if len(answer.headers.get_list("Set-Cookie")) > MOST_COOKIES:
            del answer.headers["Set-Cookie"]
        if content_type := answer.headers.get("Content-Type"):
            answer.headers["Content-Type"] = plain_type(content_type)
        assert isinstance(answer.stream, httpx2.AsyncByteStream)  # noqa: S101 - of this transport
        most = MOST_OF_A_REFUSAL if answer.status_code >= 400 else self._most
        answer.stream = _Bounded(answer.stream, most, end)
        return answer


class _Bounded(httpx2.AsyncByteStream):
    """Breaks off where it has given as much as it may, or for as long."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int, end: float | None) -> None:
        self._stream = stream
        self._left = most
        self._end = end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._stream)
        while True:
            try:
                async with asyncio.timeout_at(self._end):
                    piece = await anext(pieces)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise _too_slow() from None
            self._left -= len(piece)
            if self._left < 0:
                raise httpx2.RemoteProtocolError("The answer is longer than any may be.")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _too_slow() -> httpx2.ReadTimeout:
    return httpx2.ReadTimeout("The answer takes longer than any may.")


def guarded_client(
    judge: Judge, *, timeout: httpx2.Timeout, seconds: float, most_bytes: int = MOST_BYTES
) -> httpx2.AsyncClient:
    """`timeout`: of each step; `seconds`: of one request, to the last byte of its answer. `most_bytes`: of
    one answer that is no refusal."""
    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
    return httpx2.AsyncClient(
        transport=GuardedTransport(judge, limits=limits, seconds=seconds, most_bytes=most_bytes),
        timeout=timeout,
        follow_redirects=False,
    )


def _aimed(request: httpx2.Request, host: str, address: str) -> httpx2.Request:
    """The request as it is, certificate and Host header for the name, sent to the address."""
    if parse_address(host) == parse_address(address):
        return request
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )
