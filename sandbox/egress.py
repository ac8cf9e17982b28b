"""The only way out of a sandbox with network: a proxy that opens listed hosts and nothing else.

It listens on a Unix socket that is bound into one sandbox, speaks CONNECT and plain HTTP, resolves
names itself and connects to the very addresses it judged. Redirects are the client's affair: what it
asks for next is judged again. Which hosts are listed is said by the policy.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from net.addresses import Address, Sort, reached, sort_of
from net.lookups import Resolve, UnknownHost, few_at_once, judged_addresses, resolve_for_agents
from reading.digits import digits_of
from reading.hostnames import split_address

from .policy import Endpoint

HEAD_LIMIT = 32 * 1024
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 20.0
PIECE = 64 * 1024
MOST_CONNECTIONS = 64
"""At once, of one sandbox."""
LOOK_UPS = 8
"""Names that are looked up for one sandbox at once; the next ones wait."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[str, int], Awaitable[Streams]]

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
    | {"te", "trailer", "upgrade", "expect", "host"}
)
_TOKEN = re.compile(rb"[A-Z]{1,16}")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\0]*)")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was asked for and what came of it; for the log."""

    method: str
    host: str
    port: int
    allowed: bool
    reason: str
    address: str = ""
    """What was connected to, or why not; for operators only."""


OnDecision = Callable[[Decision], None]


class Refused(Exception):
    """`reason` is for whoever asked, and does not tell what a name means inside this network."""

    def __init__(self, reason: str, *, status: str = "403 Forbidden", address: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.address = address
        """What the name stood for; for the log."""


def why_unreachable(address: Address, endpoint: Endpoint) -> str:
    """Why a connection to `address` is never made for this entry; empty if it may be."""
    sort = sort_of(address)
    meant = reached(address)
    if sort is Sort.PRIVATE and any(
        meant.version == network.version and meant in network for network in endpoint.networks
    ):
        return ""
    return "" if sort is Sort.PUBLIC else f"it is {sort.value}"


async def connect_directly(address: str, port: int) -> Streams:
    return await asyncio.open_connection(address, port)


def entry_for(request: Request, endpoints: Sequence[Endpoint]) -> Endpoint:
    """The listed endpoint that the request is for. Raises `Refused`."""
    named = [endpoint for endpoint in endpoints if endpoint.covers(request.host)]
    if not named:
        raise Refused(f"{request.host} is not listed in network_policies")
    open_ports = [endpoint for endpoint in named if request.port in endpoint.ports]
    if not open_ports:
        raise Refused(f"port {request.port} of {request.host} is not listed")
    for endpoint in open_ports:
        if not endpoint.methods or request.method in endpoint.methods:
            return endpoint
    if request.method == "CONNECT":
        raise Refused(
            f"{request.host} is listed for some methods only, which cannot be told apart in an "
            "encrypted connection; the operator can add CONNECT to its methods"
        )
    raise Refused(f"the method {request.method} is not listed for {request.host}")


async def addresses_for(request: Request, endpoint: Endpoint, resolve: Resolve) -> list[str]:
    """What the host's name stands for now. Raises `Refused` if any of it is out of bounds."""

    def judge(host: str, address: Address, _port: int) -> None:
        if reason := why_unreachable(address, endpoint):
            raise Refused(f"what {host} leads to is not opened: {reason}", address=str(address))

    try:
        return await judged_addresses(
            request.host, request.port, judge, seconds=CONNECT_SECONDS, resolve=resolve
        )
    except UnknownHost as problem:
        raise Refused(str(problem), status="502 Bad Gateway") from problem


async def open_listed(
    request: Request,
    endpoints: Sequence[Endpoint],
    *,
    resolve: Resolve,
    connect: Connect,
    on_decision: OnDecision | None = None,
) -> Streams:
    """A connection to what the request asks for, at the very address that was judged.

    Raises `Refused`; either way the decision is told.
    """

    def log(allowed: bool, reason: str, address: str = "") -> None:
        if on_decision is not None:
            with suppress(Exception):  # a log that fails must not open or break a connection
                on_decision(
                    Decision(request.method, request.host, request.port, allowed, reason, address)
                )

    try:
        endpoint = entry_for(request, endpoints)
        addresses = await addresses_for(request, endpoint, resolve)
    except Refused as refusal:
        log(False, refusal.reason, refusal.address)
        raise
    problem = "no address"
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                streams = await connect(address, request.port)
        except (OSError, TimeoutError) as failure:
            problem = str(failure) or type(failure).__name__
            continue
        log(True, f"{endpoint.host} is listed", address)
        return streams
    log(True, "it is listed, but was not reached", f"{', '.join(addresses)}: {problem}")
    raise Refused(f"{request.host} cannot be reached", status="502 Bad Gateway")


class EgressProxy:
    """One sandbox's proxy. `start` makes the socket, `close` ends every connection and removes it."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        on_decision: OnDecision | None = None,
        resolve: Resolve = resolve_for_agents,
        connect: Connect = connect_directly,
    ) -> None:
        self._endpoints = tuple(endpoints)
        self._on_decision = on_decision
        self._resolve = few_at_once(resolve, LOOK_UPS)
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._busy: set[asyncio.Task[None]] = set()

    @property
    def socket(self) -> Path:
        if self._folder is None:
            raise RuntimeError("the proxy was not started")
        return Path(self._folder.name) / "egress.sock"

    async def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="agentsite-egress-")
        self._server = await asyncio.start_unix_server(
            self._accept, str(self.socket), limit=HEAD_LIMIT
        )
        self.socket.chmod(0o600)

    async def start_on_loopback(self) -> int:
        """For a client library of this server that knows no sockets with a path; the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_LIMIT)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._busy):
            task.cancel()
        if self._busy:
            await asyncio.wait(tuple(self._busy))
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._busy) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._busy.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._busy.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except (TimeoutError, asyncio.LimitOverrunError):
            await _answer(writer, "400 Bad Request", "the request has no proper head")
            return
        try:
            request = Request.parse(head)
        except Refused as refusal:
            await _answer(writer, refusal.status, refusal.reason)
            return
        try:
            far_reader, far_writer = await self._open(request)
        except Refused as refusal:
            await _answer(writer, refusal.status, refusal.reason)
            return
        try:
            if request.method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _both_ways(reader, writer, far_reader, far_writer)
            else:
                await _one_request(request, reader, writer, far_reader, far_writer)
        finally:
            far_writer.close()

    async def _open(self, request: Request) -> Streams:
        return await open_listed(
            request,
            self._endpoints,
            resolve=self._resolve,
            connect=self._connect,
            on_decision=self._on_decision,
        )


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    host: str
    port: int
    target: str
    """Path and query for the far side; empty for CONNECT."""
    headers: tuple[tuple[bytes, bytes], ...]
    length: int | None
    """Bytes of the body; None if it comes in chunks."""

    @classmethod
    def parse(cls, head: bytes) -> Request:
        """Raises `Refused` for everything that two readers might understand differently."""
        first, *lines = head[:-4].split(b"\r\n")
        parts = first.split(b" ")
        if len(parts) != 3 or parts[2] not in {b"HTTP/1.1", b"HTTP/1.0"}:
            raise Refused("the request line is not valid", status="400 Bad Request")
        if not _TOKEN.fullmatch(parts[0]) or not parts[1].isascii():
            raise Refused("the request line is not valid", status="400 Bad Request")
        method, target = parts[0].decode(), parts[1].decode()
        headers = []
        for line in lines:
            match = _HEADER.fullmatch(line)
            if match is None:
                raise Refused("a header is not valid", status="400 Bad Request")
            headers.append((match[1], match[2].strip(b" \t")))
        host, port, path = _target(method, target)
        return cls(method, host, port, path, tuple(headers), _body_length(headers))

    def forwarded_head(self) -> bytes:
        # Named by the connection's own header as belonging to it alone.
        listed = {
            name.strip().lower()
            for key, value in self.headers
            if key.lower() == b"connection"
            for name in value.decode("latin-1").split(",")
        }
        host = f"[{self.host}]" if ":" in self.host else self.host
        authority = host if self.port == 80 else f"{host}:{self.port}"
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {authority}", "Connection: close"]
        lines += [
            f"{key.decode()}: {value.decode('latin-1')}"
            for key, value in self.headers
            if key.decode().lower()
            not in _HOP_BY_HOP | listed - {"content-length", "transfer-encoding"}
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _target(method: str, target: str) -> tuple[str, int, str]:
    url = f"connect://{target}" if method == "CONNECT" else target
    try:
        parts = split_address(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as problem:
        raise Refused("the address is not valid", status="400 Bad Request") from problem
    if method == "CONNECT" and (port is None or parts.path or parts.query or "@" in target):
        raise Refused("CONNECT needs “host:port”", status="400 Bad Request")
    if method != "CONNECT" and (parts.scheme != "http" or "@" in parts.netloc):
        raise Refused("only whole http:// addresses are understood", status="400 Bad Request")
    host = host.rstrip(".").lower()
    if not host or not re.fullmatch(r"[a-z0-9._:-]{1,253}", host):
        raise Refused("the host's name is not valid", status="400 Bad Request")
    if ":" in host:
        try:
            host = str(ip_address(host))
        except ValueError as problem:
            raise Refused("the host's name is not valid", status="400 Bad Request") from problem
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return host, port or 80, path


def _body_length(headers: Sequence[tuple[bytes, bytes]]) -> int | None:
    lengths = [value for key, value in headers if key.lower() == b"content-length"]
    codings = [value.lower() for key, value in headers if key.lower() == b"transfer-encoding"]
    if codings:
        if lengths or codings != [b"chunked"]:
            raise Refused("the length of the body is ambiguous", status="400 Bad Request")
        return None
    if len(lengths) > 1 or (lengths and not re.fullmatch(rb"[0-9]{1,15}", lengths[0])):
        raise Refused("the length of the body is ambiguous", status="400 Bad Request")
    return int(lengths[0]) if lengths else 0


async def _answer(writer: asyncio.StreamWriter, status: str, reason: str) -> None:
    body = f"The sandbox's proxy refused: {reason}.\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    with suppress(OSError):
        await writer.drain()


async def _one_request(
    request: Request,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Send exactly this request, and everything that is answered."""
    far_writer.write(request.forwarded_head())

    async def send_body() -> None:
        if request.length is None:
            await _copy_chunks(reader, far_writer)
        else:
            await _copy_exactly(reader, far_writer, request.length)

    sending = asyncio.create_task(send_body())
    try:
        await _copy(far_reader, writer)
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError, ValueError):
            await sending


async def _copy_exactly(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int
) -> None:
    while size:
        data = await reader.read(min(PIECE, size))
        if not data:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(data)
        writer.write(data)
        await writer.drain()


async def _copy_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        line = await reader.readuntil(b"\r\n")
        size = line[:-2].partition(b";")[0].strip()
        length = digits_of(size, 16, longest=8)
        if length is None:
            raise ValueError("a chunk has no proper size")
        writer.write(size + b"\r\n")
        if length == 0:
            # Trailers are not passed on.
            writer.write(b"\r\n")
            await writer.drain()
            return
        await _copy_exactly(reader, writer, length)
        if await reader.readexactly(2) != b"\r\n":
            raise ValueError("a chunk has no proper end")
        writer.write(b"\r\n")
        await asyncio.sleep(0)  # a body may be chunks of one byte, all of them here already


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    directions = [
        asyncio.create_task(_copy(reader, far_writer)),
        asyncio.create_task(_copy(far_reader, writer)),
    ]
    try:
        await asyncio.gather(*directions)
    finally:
        for direction in directions:
            direction.cancel()
