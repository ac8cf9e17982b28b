"""daphne, but nothing of a request is kept before it is known to be within its limits.

Twisted keeps a whole body, on disk if it is long, before daphne and any application see it, waits for
headers as long as some byte comes each minute, counts no connections, and daphne hands a body on in one
go, writes an answer as fast as it is made, whether or not anybody reads it, and fails for good at one that
breaks off. The limits are
`agentsite.requestlimits`'; whose a long body is, `agentsite.bodies` finds out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from io import SEEK_END, BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any, cast
from urllib.parse import unquote

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import reactor
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.http import HTTPChannel

from agentsite import connections
from agentsite.bodies import Intake
from agentsite.proxies import client_of
from agentsite.refusals import (
    ADDRESS_TOO_LONG,
    HEAD_TOO_LARGE,
    HEAD_TOO_SLOW,
    TOO_MANY_CONNECTIONS,
    UNAVAILABLE,
    Refusal,
    whole_answer,
)
from agentsite.requestlimits import (
    ADDRESS_BYTES,
    DRAIN_SECONDS,
    HEAD_BYTES,
    HEADERS,
    IDLE_SECONDS,
    UNREAD_SECONDS,
    head_seconds,
)

logger = logging.getLogger(__name__)

IN_MEMORY_BYTES = 100_000
"""A longer body goes to disk: only one of somebody known."""
PIECE = 64 * 1024
"""Bytes of a body that are handed on before everybody else has a turn."""
QUEUED_FRAMES = 16
"""Frames of a socket that wait for its consumer before no more are read."""
FRAME_PAUSE_SECONDS = 0.05
FRAMES_AT_ONCE = 64
"""Frames of a socket that are taken apart before everybody else has a turn."""


def _later(seconds: float, work: Any, *arguments: Any) -> Any:
    return cast(Any, reactor).callLater(seconds, work, *arguments)


class GuardedRequest(WebRequest):
    """Its body is refused, or cut, as soon as it breaks a limit."""

    def __init__(self, channel: Any, queued: bool = False) -> None:
        super().__init__(channel, queued)
        # Twisted would read a whole form into memory, for nobody.
        self._parsePOSTFormSubmission = False
        self._intake: Intake | None = None
        self._timer: Any = None
        self._looking: asyncio.Task[None] | None = None
        self._received: tuple[bytes, bytes, bytes] | None = None
        self._refused = False
        self._kept: Any = None
        """The body, once it is whole."""
        self._left = 0
        """Bytes of it that its application has not received."""

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """The headers are complete; `None` is a body in chunks."""
        # One file for all lengths: Twisted's own goes to disk at once for chunks.
        self.content = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - it is kept
        if length == 0:
            return
        headers = [
            (name.lower(), value)
            for name, values in self.requestHeaders.getAllRawHeaders()
            for value in values
        ]
        peer = str(getattr(self.client, "host", ""))
        self._intake = Intake(
            path=self.channel.path_of_request(),
            headers=headers,
            length=-1 if length is None else length,
            address=client_of(peer, headers)[0],
        )
        self._watch()
        if self._intake.is_over:
            self._look()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        if self._refused or self._intake is None or self.content.closed:
            return
        self._intake.take(len(data))
        self.content.write(data)
        if self._intake.is_over and self._looking is None:
            self._look()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        if self._refused:
            self.channel.loseConnection()
            return
        if self._looking is not None:
            self._received = (command, path, version)
            return
        self._end()
        super().requestReceived(command, path, version)

    def process(self) -> Any:
        """daphne would read all of the body before anybody else has a turn: it finds none."""
        self._kept, self.content = self.content, BytesIO()
        self._kept.seek(0, SEEK_END)
        self._left = self._kept.tell()
        self._kept.seek(0)
        return super().process()

    async def receive_from(self, queue: asyncio.Queue[dict[str, Any]]) -> dict[str, Any]:
        """What its application receives: the body from where it is kept, then what daphne has to say, which
        begins with the end of the body."""
        if self._left > PIECE and not self._kept.closed:
            await asyncio.sleep(0)
        if self._left > PIECE and not self._kept.closed:
            self._left -= PIECE
            return {"type": "http.request", "body": self._kept.read(PIECE), "more_body": True}
        message = await queue.get()
        if message["type"] != "http.request":
            return message
        if self._kept.closed:
            return await queue.get()  # it was given up: what has come is no whole body
        return {**message, "body": self._kept.read()}

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self._end()
        self._forget()
        super().connectionLost(reason)

    def finish(self) -> None:
        super().finish()
        self._forget()

    def _forget(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def handle_exception(self, exception: BaseException) -> None:
        """The application raised: half an answer is broken off, for an error's page behind it would make it
        look whole."""
        if self._response_started:
            self._break_off()
        else:
            super().handle_exception(exception)

    def left(self) -> None:
        """The application is done; daphne alone would go on waiting for the rest of what it sends."""
        if not self._response_started:
            self.basic_error(500, b"Internal Server Error", "No answer was given.")
        else:
            self._break_off()

    @property
    def is_answered(self) -> bool:
        return bool(self.finished) or self.channel is None

    def _break_off(self) -> None:
        if not self.is_answered:
            self.channel.loseConnection()

    # --- its limits -------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._intake is not None:
            self._timer = _later(max(self._intake.wait(), 0.01), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._intake is None or self._refused:
            return
        refusal = self._intake.overdue()
        if refusal is not None:
            self._refuse(refusal)
        else:
            self._watch()

    def _look(self) -> None:
        """Nothing more is read until it is known whose it is."""
        self.channel.pause_reading()
        self._looking = asyncio.ensure_future(self._judge())

    async def _judge(self) -> None:
        intake = self._intake
        refusal: Refusal | None = UNAVAILABLE
        try:
            refusal = await intake.look() if intake is not None else None
        except Exception:
            logger.exception("It could not be found out whose a body is")
        self._looking = None
        if self._intake is None or self.channel is None:
            return
        self.channel.resume_reading()
        if refusal is not None:
            self._refuse(refusal)
        elif self._received is not None:
            self.requestReceived(*self._received)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer and end. What still comes is thrown away, for a moment."""
        self._refused = True
        path = self.channel.path_of_request()
        self._end()
        self.content.close()
        self.channel.transport.write(whole_answer(path, refusal))
        self.channel.end_soon()

    def _end(self) -> None:
        if self._intake is not None:
            self._intake.end()
            self._intake = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Written:
    """What is written to its connection waits there in bounds, if its writer waits for `room`."""

    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self._room = asyncio.Event()
        self._room.set()

    async def room(self) -> None:
        """Until what was written has gone out. Whoever takes nothing for long is hung up on."""
        try:
            async with asyncio.timeout(UNREAD_SECONDS):
                await self._room.wait()
        except TimeoutError:
            self._abort()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abortConnection()


class GuardedChannel(_Written, HTTPChannel):
    """One connection: a head within its length and time, then a `GuardedRequest`."""

    requestFactory = GuardedRequest  # noqa: N815 - Twisted's name
    maxHeaders = HEADERS  # noqa: N815
    totalHeadersSize = HEAD_BYTES  # noqa: N815
    MAX_LENGTH = HEAD_BYTES

    def __init__(self) -> None:
        super().__init__()
        self._head_timer: Any = None
        self._ending: Any = None

    def pauseProducing(self) -> None:  # noqa: N802
        super().pauseProducing()
        self._room.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        super().resumeProducing()
        self._room.set()

    def path_of_request(self) -> str:
        """Without its query, for the request whose body is being read."""
        target: bytes = getattr(self, "_command_path", b"/")
        return unquote(target.partition(b"?")[0].decode("latin-1"))

    def pause_reading(self) -> None:
        self._networkProducer.pauseProducing()

    def resume_reading(self) -> None:
        if not self._waitingForTransport:
            self._networkProducer.resumeProducing()

    def end_soon(self) -> None:
        if self._ending is None:
            self._ending = _later(DRAIN_SECONDS, self._abort)

    def connectionMade(self) -> None:  # noqa: N802
        super().connectionMade()
        self._expect_head()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self._ending is not None:
            return
        if self._head_timer is None and not self.requests:
            self._expect_head()
        super().dataReceived(data)

    def lineLengthExceeded(self, line: bytes) -> Any:  # noqa: N802
        self._refuse(HEAD_TOO_LARGE)

    def lineReceived(self, line: bytes) -> None:  # noqa: N802
        if self._ending is not None:
            return
        if not self.requests and len(line) > ADDRESS_BYTES:
            self._refuse(ADDRESS_TOO_LONG)
            return
        if self._head_timer is None:
            # It came with the request before, and was kept until that one was answered.
            self._expect_head()
        super().lineReceived(line)

    def allHeadersReceived(self) -> None:  # noqa: N802
        self._stop_waiting()
        self._command_path = self._path
        # How long a body may take, its request knows.
        self.setTimeout(None)
        super().allHeadersReceived()

    def allContentReceived(self) -> None:  # noqa: N802
        # What Twisted finds here is what it comes back to after the answer.
        self.setTimeout(self.timeOut)
        super().allContentReceived()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self._stop_waiting()
        self._room.set()
        if self._ending is not None and self._ending.active():
            self._ending.cancel()
        super().connectionLost(reason)

    def _expect_head(self) -> None:
        self._head_timer = _later(head_seconds(), self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        self._refuse(HEAD_TOO_SLOW)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, refusal: Refusal) -> None:
        if self._ending is None:
            self.transport.write(whole_answer("", refusal))
            self.end_soon()


class GuardedSocket(_Written, WebSocketProtocol):
    """A socket whose frames are read no faster than its consumer takes them, nor written than its client."""

    _behind = False
    """Frames are here that wait for their turn."""

    def connectionMade(self) -> None:  # noqa: N802
        super().connectionMade()
        # Twisted goes on telling the channel it came from.
        self.transport.unregisterProducer()
        self.transport.registerProducer(self, True)

    def pauseProducing(self) -> None:  # noqa: N802
        self._room.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        self._room.set()

    def stopProducing(self) -> None:  # noqa: N802
        self._room.set()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self._room.set()
        super().connectionLost(reason)

    def onPing(self, payload: bytes) -> None:  # noqa: N802
        # No consumer waits for room before a pong.
        if self._room.is_set():
            super().onPing(payload)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803
        super().onMessage(payload, isBinary)
        if self.application_queue.qsize() >= QUEUED_FRAMES:
            self.transport.pauseProducing()
            _later(FRAME_PAUSE_SECONDS, self._read_on)

    def consumeData(self) -> None:  # noqa: N802
        if self.state not in (self.STATE_OPEN, self.STATE_CLOSING):
            super().consumeData()
            return
        for _frame in range(FRAMES_AT_ONCE):
            if not self.processData() or self.state == self.STATE_CLOSED:
                return
        if not self._behind:
            self._behind = True
            self.transport.pauseProducing()
            _later(0, self._catch_up)

    def _catch_up(self) -> None:
        self._behind = False
        self.consumeData()
        self._read_on()

    def _read_on(self) -> None:
        if self._behind or self.state not in (self.STATE_OPEN, self.STATE_CLOSING):
            return
        if self.application_queue.qsize() >= QUEUED_FRAMES:
            _later(FRAME_PAUSE_SECONDS, self._read_on)
        else:
            self.transport.resumeProducing()


class _GuardedFactory(HTTPFactory):
    protocol = GuardedChannel

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.timeOut = IDLE_SECONDS

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = GuardedRequest
        return protocol


class _Counted(ProtocolWrapper):
    """A connection that counts for its address for as long as it is open, whatever it becomes."""

    _counted = False

    def makeConnection(self, transport: Any) -> None:  # noqa: N802
        address = str(getattr(transport.getPeer(), "host", ""))
        if not connections.enter(address):
            transport.write(whole_answer("", TOO_MANY_CONNECTIONS))
            transport.loseConnection()
            return
        self._counted, self._address = True, address
        super().makeConnection(transport)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self._counted:
            super().dataReceived(data)

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        if self._counted:
            self._counted = False
            connections.leave(self._address)
            super().connectionLost(reason)


class _CountingFactory(WrappingFactory):
    protocol = _Counted


class GuardedServer(Server):
    """daphne's server makes its factories while it starts: the guarded ones take their place."""

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """As daphne's, but a request says itself what its application receives."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        receive: Callable[[], Awaitable[dict[str, Any]]] = queue.get
        if isinstance(protocol, GuardedRequest):
            receive = partial(protocol.receive_from, queue)
        scope.setdefault("asgi", {"version": "3.0"})
        send = partial(self.handle_reply, protocol)
        application = self.application(scope=scope, receive=receive, send=send)
        if protocol not in self.connections:
            return None
        self.connections[protocol]["application_instance"] = asyncio.ensure_future(application)
        return queue

    async def handle_reply(self, protocol: Any, message: Any) -> None:
        """The application goes on when there is room for more."""
        await super().handle_reply(protocol, message)
        written = getattr(protocol, "channel", protocol)
        if isinstance(written, _Written):
            await written.room()

    def application_checker(self) -> None:
        """Each second, of every request and socket."""
        for protocol, details in list(self.connections.items()):
            application = details.get("application_instance")
            if not isinstance(protocol, GuardedRequest) or protocol.is_answered:
                continue
            if application is None or not application.done() or application.cancelled():
                continue
            if application.exception() is None:
                protocol.left()
        super().application_checker()

    @property
    def http_factory(self) -> Any:
        return self._http_factory

    @http_factory.setter
    def http_factory(self, _made: Any) -> None:
        self._http_factory = _CountingFactory(_GuardedFactory(self))

    @property
    def ws_factory(self) -> Any:
        return self._ws_factory

    @ws_factory.setter
    def ws_factory(self, made: Any) -> None:
        made.protocol = GuardedSocket
        self._ws_factory = made
