"""Bodies within limits, before anything of them is kept: how long, how slow, how many at once.

One in another coding than UTF-8 is refused here as well (`agentsite.contenttypes`).

A body no longer than a stranger's is not looked at. One that is longer must show whose it is, then has
its route's limit. Under daphne, which keeps a whole body before an application runs,
`agentsite.guarded_daphne` asks the same `Intake` first; here it is asked once more.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from accounts.addresses import neighbourhood
from agentsite.contenttypes import refusal_of
from agentsite.credentials import is_known, shows_credentials
from agentsite.logs import App, Receive, Scope, Send
from agentsite.refusals import TOO_MANY_SLOW, TOO_SLOW, Refusal, answer_of, too_large
from agentsite.requestlimits import (
    DRAIN_SECONDS,
    LINGERING,
    LINGERING_PER_ADDRESS,
    LINGERING_SECONDS,
    body_seconds,
)
from agentsite.routelimits import limit_of
from jobs.engine import engine
from reading.digits import number_of

UNKNOWN = -1
_FRAMING = (b"content-length", b"transfer-encoding")

_lingering: Counter[str] = Counter()
"""Bodies of strangers that take long, by address."""


def body_length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """What a request declares: 0 for no body, `UNKNOWN` for one in chunks. Names in lower case."""
    length = 0
    for name, value in headers:
        if name == b"content-length":
            given = number_of(value.decode("latin-1"))
            length = UNKNOWN if given is None else given
        elif name == b"transfer-encoding":
            return UNKNOWN
    return length


class Intake:
    """One body: how much of it came, how much may come and until when."""

    def __init__(
        self, *, path: str, headers: Iterable[tuple[bytes, bytes]], length: int, address: str
    ) -> None:
        self._path = path
        self._headers = headers
        self._length = length
        self._address = neighbourhood(address)
        self._most: int = settings.AGENTSITE_ANONYMOUS_BODY_BYTES
        self._known = False
        self._looked = False
        self._lingers = False
        self._received = 0
        self._begun = time.monotonic()

    def take(self, size: int) -> None:
        self._received += size

    @property
    def received(self) -> int:
        return self._received

    @property
    def is_over(self) -> bool:
        """Whether it is, or says that it will be, longer than it may be as far as is known."""
        return max(self._received, self._length) > self._most

    async def look(self) -> Refusal | None:
        """For a body that `is_over`: whose it is, asked once, and whether it may go on."""
        if not self._looked:
            self._looked = True
            most = limit_of(self._path).signed_in
            if max(self._received, self._length) > most:
                # Nobody may: whose it is makes no difference.
                return too_large(most, known=True)
            if shows_credentials(self._headers):
                self._known = await engine.in_database(is_known, self._headers)
                if self._known:
                    self._most = most
                    self.end()
        return too_large(self._most, known=self._known) if self.is_over else None

    def wait(self) -> float:
        """Seconds until `overdue` should be asked again; zero or less: now."""
        passed = time.monotonic() - self._begun
        left = body_seconds(self._received, signed_in=self._known) - passed
        if not self._known and not self._lingers:
            return min(left, LINGERING_SECONDS - passed)
        return left

    def overdue(self) -> Refusal | None:
        """After `wait()`: why it must end, if it must."""
        passed = time.monotonic() - self._begun
        if passed >= body_seconds(self._received, signed_in=self._known):
            return TOO_SLOW
        if self._known or self._lingers or passed < LINGERING_SECONDS:
            return None
        if _lingering[self._address] >= LINGERING_PER_ADDRESS or _lingering.total() >= LINGERING:
            return TOO_MANY_SLOW
        self._lingers = True
        _lingering[self._address] += 1
        return None

    def end(self) -> None:
        """It came to its end, one way or the other. Safe to repeat."""
        if self._lingers:
            self._lingers = False
            _lingering[self._address] -= 1
            if not _lingering[self._address]:
                del _lingering[self._address]


class Bodies:
    """ASGI: keeps bodies within their limits, and closes connections whose body nobody read."""

    def __init__(self, app: App) -> None:
        self.inner = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refusal := refusal_of(scope["headers"]):
            await _Exchange(scope, receive, send, _intake_of(scope, 0)).refuse(refusal)
            return
        length = body_length(scope["headers"])
        if length == 0:
            await self.inner(scope, receive, send)
            return
        if length == UNKNOWN:
            # Django believes the header alone, and reads no form without one: once the body is
            # whole, its length joins this list.
            scope = {**scope, "headers": list(scope["headers"])}
        with _intake(scope, length) as intake:
            await _Exchange(scope, receive, send, intake).run(self.inner)


def _intake_of(scope: Scope, length: int) -> Intake:
    client = scope.get("client")
    return Intake(
        path=scope["path"],
        headers=scope["headers"],
        length=length,
        address=str(client[0]) if client else "",
    )


@contextmanager
def _intake(scope: Scope, length: int) -> Iterator[Intake]:
    intake = _intake_of(scope, length)
    try:
        yield intake
    finally:
        intake.end()


class _Exchange:
    """One request with a body, and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, intake: Intake) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._intake = intake
        self._whole = False
        self._answered = False
        self._refusal: Refusal | None = None

    async def run(self, app: App) -> None:
        if self._intake.is_over:
            self._refusal = await self._intake.look()
        if self._refusal is None:
            await app(self._scope, self.receive, self.send)
        if self._refusal is not None and not self._answered:
            await self.refuse(self._refusal)

    async def receive(self) -> Any:
        if self._whole:
            return await self._receive()
        if self._refusal is None:
            message = await self._within_time()
            if message is not None:
                if message["type"] != "http.request":
                    return message
                self._intake.take(len(message.get("body", b"")))
                if self._intake.is_over:
                    self._refusal = await self._intake.look()
                if self._refusal is None:
                    if not message.get("more_body", False):
                        self._end()
                    return message
        # The application drops what it has; the answer is given here.
        return {"type": "http.disconnect"}

    def _end(self) -> None:
        self._whole = True
        self._intake.end()
        headers = self._scope["headers"]
        if body_length(headers) == UNKNOWN:
            kept = [(name, value) for name, value in headers if name not in _FRAMING]
            headers[:] = [*kept, (b"content-length", str(self._intake.received).encode())]

    async def send(self, message: Any) -> None:
        if self._refusal is not None and not self._answered:
            return
        if message["type"] == "http.response.start":
            self._answered = True
            if not self._whole:
                # The rest of the body would be taken for ever.
                kept = [pair for pair in message.get("headers", ()) if pair[0] != b"connection"]
                message = {**message, "headers": [*kept, (b"connection", b"close")]}
        await self._send(message)

    async def _within_time(self) -> Any:
        """The next piece, or None when it was refused meanwhile."""
        while True:
            try:
                async with asyncio.timeout(max(self._intake.wait(), 0)):
                    return await self._receive()
            except TimeoutError:
                self._refusal = self._intake.overdue()
                if self._refusal is not None:
                    return None

    async def refuse(self, refusal: Refusal) -> None:
        self._answered = True
        headers, body = answer_of(self._scope["path"], refusal)
        start = {"type": "http.response.start", "status": refusal.status, "headers": headers}
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        if refusal is not TOO_SLOW:
            await self._drain()
        await self._send({"type": "http.response.body"})

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                more = not self._whole
                while more:
                    message = await self._receive()
                    more = message["type"] == "http.request" and message.get("more_body", False)
        except TimeoutError:
            pass
