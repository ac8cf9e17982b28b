"""An HTTP client that connects only where a judge lets it: for addresses that people typed in.

Names are looked up and judged at every connection, so one that changes its mind in between gains
nothing. Redirects are not followed. Where the operator has set a proxy for everything, it decides where
it connects to.
"""

from __future__ import annotations

import httpx2

from net.addresses import parse_address
from net.lookups import Judge, UnknownHost, judged_addresses

LOOK_UP_SECONDS = 10.0


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """Lets through what the judge raises, having connected to nothing."""

    def __init__(self, judge: Judge, *, limits: httpx2.Limits) -> None:
        super().__init__(limits=limits)
        self._judge = judge

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            *others, last = await judged_addresses(host, port, self._judge, seconds=LOOK_UP_SECONDS)
        except UnknownHost as problem:
            raise httpx2.ConnectError(f"The name {host} cannot be resolved.") from problem
        for address in others:
            try:
                return await super().handle_async_request(_aimed(request, host, address))
            except httpx2.ConnectError:
                continue  # as every client does that is given several
        return await super().handle_async_request(_aimed(request, host, last))


def guarded_client(judge: Judge, *, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
    return httpx2.AsyncClient(
        transport=GuardedTransport(judge, limits=limits), timeout=timeout, follow_redirects=False
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
