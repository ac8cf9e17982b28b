"""Connections that go only where somebody says they may: for addresses that people typed in.

A name is looked up here, every address it leads to is judged, and the connection is made to one that
was judged, so a name that changes its mind in between gains nothing. Redirects are not followed.
Where the operator has set a proxy for everything, it decides where it connects to. Which address is
allowed is the judge's decision, whoever gives it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address

import httpx2

from harness.errors import BadRequest

Judge = Callable[[str, str], str]
"""Of a host as it is written and an address it leads to: why nothing may be sent there; "": it may."""


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """Raises `BadRequest`, having connected to nothing, where the judge refuses one of the addresses."""

    def __init__(self, judge: Judge, *, limits: httpx2.Limits) -> None:
        super().__init__(limits=limits)
        self._judge = judge

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        *others, last = await self._judged(host, request.url.port)
        for address in others:
            try:
                return await super().handle_async_request(_aimed(request, host, address))
            except httpx2.ConnectError:
                continue  # as every client does that is given several
        return await super().handle_async_request(_aimed(request, host, last))

    async def _judged(self, host: str, port: int | None) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as problem:
            raise httpx2.ConnectError(f"The name {host} cannot be resolved.") from problem
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for address in addresses:
            # One bad address among good ones is how names are rebound.
            if why := self._judge(host, address):
                raise BadRequest(why, hint="Check the base URL of the provider key.")
        return addresses


def guarded_client(judge: Judge, *, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
    return httpx2.AsyncClient(
        transport=GuardedTransport(judge, limits=limits), timeout=timeout, follow_redirects=False
    )


def _aimed(request: httpx2.Request, host: str, address: str) -> httpx2.Request:
    """The request as it is, certificate and Host header for the name, sent to the address."""
    plain = address.partition("%")[0]
    if ip_address(plain) == _literal(host):
        return request
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=plain),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


def _literal(host: str) -> object:
    try:
        return ip_address(host)
    except ValueError:
        return None
