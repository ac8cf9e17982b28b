"""One request of a webhook: to a judged address, without redirects, and bounded in time and size.

It knows no tables; `courier` decides what is sent and what becomes of the answer.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from django.conf import settings
from django.utils import timezone
from yarl import URL

from net.addresses import Sort, sort_of
from net.piecemeal import piecemeal_socket
from reading.digits import number_of
from reading.moments import moment_in_mail

from .addresses import AddressRefused, AddressUnknown, judged_addresses

EXCERPT_BYTES = 2_000
"""Kept of an answer; more is not read."""
EXCERPT_SECONDS = 2.0
"""What an answer's body may take; the status has been given by then."""
HEADER_BYTES = 8_192
"""Of one header line of the answer."""
USER_AGENT = "Agentsite-Webhooks/1"

ADDRESS = "address"
"""`Outcome.code`: the name leads where webhooks may not go."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one request; `status` None: nothing was answered, `code` says why in one word."""

    status: int | None = None
    code: str = ""
    problem: str = ""
    body: str = ""
    """As much of the answer's as was asked for."""
    milliseconds: int = 0
    retry_after: float = 0.0
    """Seconds the receiver asked us to wait."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the answer, by names in lower case."""
    is_inside: bool = False
    """It was sent to a host of this network, which the operator lists."""
    is_quoting: bool = False
    """`problem` may repeat what answered."""

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def excerpt(self) -> str:
        """What people may be shown of the body: nothing that answers inside this network."""
        return "" if self.is_inside else self.body

    @property
    def summary(self) -> str:
        return f"HTTP {self.status}" if self.status is not None else self.problem[:200]


Addresses = Callable[[str, int], Awaitable[list[str]]]
"""What a host leads to now, all of it allowed. Raises AddressRefused and AddressUnknown."""


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    most: int = EXCERPT_BYTES,
    addresses: Addresses = judged_addresses,
) -> Outcome:
    """Never raises for what a receiver does. `most` bytes are kept of the answer; the body is JSON
    unless `headers` say otherwise."""
    begun = time.monotonic()
    status: int | None = None
    code = problem = answered = ""
    is_inside = is_quoting = False
    wait = 0.0
    received: dict[str, str] = {}
    address = URL(url, encoded=True)
    try:
        async with asyncio.timeout(settings.AGENTSITE_WEBHOOK_TIMEOUT):
            judged = await addresses(address.host or "", address.port or 443)
            is_inside = any(sort_of(ip_address(one)) is not Sort.PUBLIC for one in judged)
            async with (
                _session(judged) as session,
                session.post(
                    address,
                    data=body,
                    headers={"Content-Type": "application/json", **headers},
                    allow_redirects=False,
                ) as answer,
            ):
                status = answer.status
                wait = _retry_after(answer.headers.get("Retry-After", ""))
                received = {name.lower(): value for name, value in answer.headers.items()}
                answered = await _body(answer, most)
    except AddressRefused as refusal:
        code, problem = ADDRESS, refusal.words
    except AddressUnknown as unknown:
        code, problem = "name", str(unknown)
    except TimeoutError:
        code = "timeout"
        problem = f"no answer within {settings.AGENTSITE_WEBHOOK_TIMEOUT} s"
    except aiohttp.ClientSSLError as failure:
        code, problem = "tls", _in_words(failure, is_inside=is_inside)
    except aiohttp.ClientConnectorError as failure:
        # Its own words name the address, which may be one inside that the operator listed.
        code = "connection"
        problem = f"no connection to {address.host}: {_said(failure.os_error)}"
    except (aiohttp.ClientError, OSError, ValueError) as failure:
        code, problem = "connection", _in_words(failure, is_inside=is_inside)
        is_quoting = not is_inside
    if status is not None:
        # The receiver has said what it had to say; that its body broke off changes nothing.
        code = problem = ""
    spent = round((time.monotonic() - begun) * 1000)
    return Outcome(
        status,
        code,
        problem,
        answered,
        spent,
        wait,
        received,
        is_inside,
        is_quoting and bool(problem),
    )


def _said(failure: OSError) -> str:
    return os.strerror(failure.errno) if failure.errno else type(failure).__name__


def _in_words(failure: Exception, *, is_inside: bool) -> str:
    """Its own words may repeat what answered, be it no server for the web."""
    return (not is_inside and str(failure)) or type(failure).__name__


def _session(addresses: Sequence[str]) -> aiohttp.ClientSession:
    """One that connects to these addresses and no others, and knows no cookies and no proxies."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            resolver=_Fixed(addresses),
            use_dns_cache=False,
            limit=1,
            force_close=True,
            socket_factory=piecemeal_socket,
        ),
        timeout=aiohttp.ClientTimeout(total=settings.AGENTSITE_WEBHOOK_TIMEOUT),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": USER_AGENT},
        auto_decompress=False,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
        trust_env=False,
    )


class _Fixed(AbstractResolver):
    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in self._addresses
        ]

    async def close(self) -> None:
        pass


async def _body(answer: aiohttp.ClientResponse, most: int) -> str:
    read = bytearray()
    try:
        async with asyncio.timeout(EXCERPT_SECONDS):
            while len(read) < most:
                piece = await answer.content.read(most - len(read))
                if not piece:
                    break
                read += piece
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    # A NUL is text that one of the databases cannot hold.
    return read.decode("utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _retry_after(value: str) -> float:
    value = value.strip()
    if (seconds := number_of(value, most=999_999_999)) is not None:
        return float(seconds)
    moment = moment_in_mail(value)
    if moment is None:
        return 0.0
    return max(0.0, (moment - timezone.now()).total_seconds())
