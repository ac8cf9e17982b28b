"""uvicorn, but it does not wait for headers for ever, bounds them, and counts connections.

It hands bodies on as they come and stops reading when they are not taken, so their limits are kept by
`agentsite.bodies`. The limits are `agentsite.requestlimits`'.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from agentsite import connections
from agentsite.refusals import (
    ADDRESS_TOO_LONG,
    HEAD_TOO_LARGE,
    HEAD_TOO_SLOW,
    TOO_MANY_CONNECTIONS,
    Refusal,
    whole_answer,
)
from agentsite.requestlimits import ADDRESS_BYTES, HEAD_BYTES, HEADERS, head_seconds

MOST_PIPELINED = 16
"""Requests that wait behind one that is not answered yet. uvicorn makes as many as have arrived, thousands of
them in one go; browsers send none."""


class TooManyPipelined(Exception):
    """Ends the parser's work; the connection is closed already."""


class GuardedHttp(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = self._head_size = 0
        self._counted = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not connections.enter(self._address):
            self._refuse(TOO_MANY_CONNECTIONS)
            return
        self._counted = True
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._counted:
            self._counted = False
            connections.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._head_timer is None and self._is_idle():
            self._expect_head()
        counts = self._head_timer is not None
        super().data_received(data)
        if counts and self._head_timer is not None:
            # Not in `on_header`: a header without an end is never handed on.
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(HEAD_TOO_LARGE)

    def handle_websocket_upgrade(self) -> None:
        if self.transport.is_closing():
            return
        self._stop_waiting()
        # Its socket counts on, and says when it ends.
        self._counted = False
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MOST_PIPELINED:
            self.transport.close()
            raise TooManyPipelined
        super().on_message_begin()
        if self._head_timer is None:
            self._expect_head()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > ADDRESS_BYTES:
            self._refuse(ADDRESS_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._head_size += len(name) + len(value)
        if len(self.headers) > HEADERS or self._head_size > HEAD_BYTES:
            self._refuse(HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.transport.is_closing():
            super().on_message_complete()

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _expect_head(self) -> None:
        self._head_bytes = self._head_size = 0
        self._head_timer = self.loop.call_later(head_seconds(), self._refuse, HEAD_TOO_SLOW)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, refusal: Refusal) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(whole_answer("", refusal))
            self.transport.close()


PIECE = 4 * 1024
"""Bytes of a socket that are taken apart before their frames are counted."""
MOST_FRAMES = 512
"""That come at once. Whoever sends more, of a few bytes each, is hung up on: everybody would wait while
they are taken apart."""


class GuardedSocket(WebSocketsSansIOProtocol):
    """Leaves its address's count when it ends: the connection came in as a `GuardedHttp`."""

    _frames = 0

    def data_received(self, data: bytes) -> None:
        self._frames = 0
        for place in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[place : place + PIECE])
            if self._frames > MOST_FRAMES:
                self.transport.close()

    def handle_events(self) -> None:
        self._frames += len(self.conn.events)
        super().handle_events()

    def connection_lost(self, exc: Exception | None) -> None:
        connections.leave(self.client[0] if self.client else "")
        super().connection_lost(exc)
