"""The connections of one MCP session: only where `net` lets them, and only as much as one session needs.

A server decides how much its client has to read, to answer and to ask again. What it sends is parsed where
all runs wait, so it is bounded by what parsing costs, not by its length alone; and a stream that ends at
once, or a question that wants an answer, leads to a request each, so these are counted.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx2

from net.guarded import GuardedTransport
from reading.jsonparts import Parts

from .addresses import judge

BURST = 100
"""Requests that a session may make at once."""
A_SECOND = 10.0
"""Those that it may make after that."""
LISTENING_SECONDS = 5.0
"""Between two of the streams on which a server says what nobody asked for, on the average of `LISTENS`: one
that breaks off is taken up again as soon as the server says."""
LISTENS = 2


@dataclass(frozen=True, slots=True)
class Challenge:
    """That a server wants another token, or one that may more (RFC 6750, 3)."""

    status: int
    more: bool
    """The token is good, and may not do this."""
    scope: str
    """What one would need; empty: it does not say."""


Refused = Callable[[Challenge], None]
Answered = Callable[[str, int], None]
"""The method of a request, and the status that answered it."""


def client_for(
    *,
    timeout: httpx2.Timeout,
    most_bytes: int,
    most_parts: int,
    give_up: GiveUp,
    refused: Refused,
    answered: Answered,
) -> httpx2.AsyncClient:
    """`most_parts` of one answer. `give_up` is told why the session is not worth going on with, `refused`
    what the server wants to see, `answered` of each answer as it begins."""
    limits = httpx2.Limits(max_connections=20, max_keepalive_connections=5)
    # The streams of a session are as long as it; its calls have their time in `sessions`.
    inner = GuardedTransport(judge, limits=limits, seconds=None, most_bytes=most_bytes)
    return httpx2.AsyncClient(
        transport=_Counted(inner, most_parts, give_up, refused, answered),
        timeout=timeout,
        follow_redirects=False,
    )


GiveUp = Callable[[str], None]


class _Counted(httpx2.AsyncBaseTransport):
    def __init__(
        self,
        inner: GuardedTransport,
        most_parts: int,
        give_up: GiveUp,
        refused: Refused,
        answered: Answered,
    ) -> None:
        self._inner = inner
        self._most_parts = most_parts
        self._give_up = give_up
        self._refused = refused
        self._answered = answered
        self._left = float(BURST)
        self._filled = time.monotonic()
        self._listened: deque[float] = deque(maxlen=LISTENS)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            now = time.monotonic()
            full = len(self._listened) == LISTENS
            turn = max(now, self._listened[0] + LISTENS * LISTENING_SECONDS) if full else now
            self._listened.append(turn)
            await asyncio.sleep(turn - now)
        self._spend()
        answer = await self._inner.handle_async_request(request)
        if answer.status_code in {401, 403}:
            self._refused(_challenge_in(answer))
        self._answered(request.method, answer.status_code)
        assert isinstance(answer.stream, httpx2.AsyncByteStream)  # noqa: S101 - of the inner one
        answer.stream = _Counting(answer.stream, self._most_parts, self._give_up)
        return answer

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _spend(self) -> None:
        now = time.monotonic()
        self._left = min(BURST, self._left + (now - self._filled) * A_SECOND)
        self._filled = now
        if self._left < 1:
            raise _refusal(self._give_up, "It wants too much to be asked and answered.")
        self._left -= 1


class _Counting(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, most_parts: int, give_up: GiveUp) -> None:
        self._stream = stream
        self._most = most_parts
        self._give_up = give_up

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = Parts()
        async for piece in self._stream:
            parts.take(piece)
            if parts.seen > self._most:
                raise _refusal(self._give_up, f"Its answer has more than {self._most:,} parts.")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _challenge_in(answer: httpx2.Response) -> Challenge:
    said = parse_www_authenticate(answer.headers.get("WWW-Authenticate", ""))
    return Challenge(
        answer.status_code,
        answer.status_code == 403 and said.get("error") == "insufficient_scope",
        said.get("scope", ""),
    )


_PARAMETER = re.compile(r'\b(error|scope)="?([^",]{0,2000})')


def parse_www_authenticate(header: str) -> dict[str, str]:
    """The two parts of it that are heeded here."""
    return dict(_PARAMETER.findall(header[:8_000]))


def _refusal(give_up: GiveUp, words: str) -> httpx2.RemoteProtocolError:
    give_up(words)
    return httpx2.RemoteProtocolError(words)
