"""Fetches one address from the web for a tool: judged at every hop, by policy and rules, and bounded.

Each request, the first and those that redirects lead to, is a connection of its own that
`sandbox.egress` opens at the very address it judged. What the bytes mean is `pages`' part.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote, urlunsplit

import h11

from harness.errors import ToolError
from harness.tools import Objection
from net.lookups import Resolve, resolve_for_agents
from reading.hostnames import ascii_name, joined_address, split_address
from sandbox.egress import (
    Connect,
    OnDecision,
    Refused,
    Request,
    Streams,
    connect_directly,
    open_listed,
)
from sandbox.policy import Endpoint
from tools_app.web.credentials import HIDDEN, Credentials

EXTRA = "egress"
"""The name of the `Egress` among a context's extras."""

SECONDS = 30.0
"""Of a whole fetch, with all its redirects."""
MOST_BYTES = 5 * 1024 * 1024
"""Of a body, after decompression; what is beyond is not read."""
MOST_REDIRECTS = 5
ADDRESS_CHARACTERS = 2_048
PIECE = 2 * 1024
"""That is taken apart at once: a server may send each byte as a chunk of its own."""
USER_AGENT = "Agentsite/1.0 (fetches pages for an agent)"

Objects = Callable[[str], Objection | None]
"""What the rules have against an address that nobody has allowed."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HOST = re.compile(r"[a-z0-9._:-]{1,253}")


@dataclass(frozen=True, slots=True)
class Egress:
    """What of the web a conversation may reach, and how it is reached."""

    endpoints: Sequence[Endpoint]
    on_decision: OnDecision | None = None
    resolve: Resolve = resolve_for_agents
    connect: Connect = connect_directly
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    credentials: Credentials | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    address: str
    """After redirects."""
    status: int
    reason: str
    media_type: str
    """Lower case, without parameters; empty if the server named none."""
    charset: str
    body: bytes
    cut: bool
    """It was longer than the limit; the rest was not read."""


@dataclass(frozen=True, slots=True)
class Address:
    """An http or https address, taken apart and written so that no reader can take it otherwise."""

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises `ToolError` saying what is wrong with `text`."""
        if len(text) > ADDRESS_CHARACTERS:
            raise ToolError(f"The address is longer than {ADDRESS_CHARACTERS:,} characters.")
        if any(ord(character) <= 32 or ord(character) == 127 for character in text):
            raise ToolError("The address holds a space or a control character; encode it.")
        try:
            parts = split_address(text)
            host, port = parts.hostname or "", parts.port
            host = ascii_name(host)
        except ValueError as problem:
            raise ToolError(f"“{text[:200]}” is not an address: {problem}.") from problem
        if parts.scheme not in {"http", "https"}:
            raise ToolError(
                f"“{text[:200]}” is not a web address.",
                hint="Give a whole one that begins with https:// or http://.",
            )
        if "@" in parts.netloc:
            raise ToolError("An address with a user name or password in it is not fetched.")
        host = host.rstrip(".").lower()
        if not _HOST.fullmatch(host):
            raise ToolError(f"“{text[:200]}” names no valid host.")
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
        target = urlunsplit(("", "", path, query, ""))
        # “//host” as a path would read as another host.
        target = "/" + target.lstrip("/") if target.startswith("//") else target
        return cls(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), target)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


async def fetch(
    address: str,
    egress: Egress,
    *,
    headers: Mapping[str, str] | None = None,
    objection: Objects | None = None,
    seconds: float = SECONDS,
    most: int = MOST_BYTES,
) -> Fetched:
    """GET `address`, following redirects. Raises `ToolError` with the reason for the model.

    `objection` says what stands against a redirect's address; `address` itself was judged before.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _follow(
                Address.parse(address), egress, headers or {}, most, objection or _nothing
            )
    except TimeoutError as problem:
        raise ToolError(f"{address[:200]} did not answer within {seconds:g} seconds.") from problem


def _nothing(_address: str) -> None:
    return None


async def _follow(
    address: Address, egress: Egress, headers: Mapping[str, str], most: int, objection: Objects
) -> Fetched:
    judged = {address.host}
    for _hop in range(MOST_REDIRECTS + 1):
        fetched, location = await _get(address, egress, headers, most)
        if location is None:
            return fetched
        try:
            there = joined_address(str(address), location)
        except ValueError as problem:
            raise ToolError(f"{address} redirects to something that is no address.") from problem
        onward = Address.parse(there)
        _require_no_objection(address, onward, objection(str(onward)), judged)
        judged.add(onward.host)
        address = onward
    raise ToolError(f"It redirected more than {MOST_REDIRECTS} times; the last was to {address}.")


def _require_no_objection(
    address: Address, onward: Address, found: Objection | None, judged: set[str]
) -> None:
    # Whoever allowed the host once need not be asked because its server says “over there”.
    if found is None or (found.asks and onward.host in judged):
        return
    words = f"{address} redirects to {onward}, which was not fetched: {found.reason}"
    if found.asks:
        raise ToolError(words, hint=f"Fetch {onward} itself, so that a person is asked.")
    raise ToolError(words, hint="Do not look for another way there; go on without it.")


async def _get(
    address: Address, egress: Egress, headers: Mapping[str, str], most: int
) -> tuple[Fetched, str | None]:
    """The answer, and where it redirects to if it does. What authorises the request is asked for each
    address anew, so a redirect takes no token along."""
    reader, writer = await _open(address, egress)
    try:
        bearer = await egress.credentials.bearer_for(str(address)) if egress.credentials else ""
        if not bearer:
            return await _talk(address, headers, reader, writer, most)
        headers = {**headers, "Authorization": f"Bearer {bearer}"}
        fetched, location = await _talk(address, headers, reader, writer, most)
        if location is not None and bearer in unquote(location):
            raise ToolError(f"{address.host} redirects to an address that repeats the token.")
        return _without(bearer, fetched), location
    except h11.RemoteProtocolError as problem:
        raise ToolError(f"{address.host} did not answer as a web server does: {problem}.") from None
    except (OSError, EOFError) as problem:
        said = str(problem) or type(problem).__name__
        raise ToolError(f"The connection to {address.host} broke: {said}.") from problem
    finally:
        writer.close()
        with suppress(OSError, ssl.SSLError):
            writer.transport.abort()


async def _open(address: Address, egress: Egress) -> Streams:
    request = Request("GET", address.host, address.port, address.target, (), 0)
    try:
        reader, writer = await open_listed(
            request,
            egress.endpoints,
            resolve=egress.resolve,
            connect=egress.connect,
            on_decision=egress.on_decision,
        )
    except Refused as refusal:
        raise ToolError(
            f"{address} was not fetched: {refusal.reason}.",
            hint="What may be reached is said in the environment of this conversation; staff can "
            "add a host there. Tell the person which one you need and why.",
        ) from refusal
    if address.scheme == "https":
        try:
            await writer.start_tls(egress.tls, server_hostname=address.host)
        except (OSError, ssl.SSLError) as problem:
            writer.close()
            raise ToolError(f"No safe connection to {address.host}: {problem}.") from problem
    return reader, writer


async def _talk(
    address: Address,
    headers: Mapping[str, str],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    most: int,
) -> tuple[Fetched, str | None]:
    line = h11.Connection(h11.CLIENT)
    sent = {
        "Host": address.authority,
        "User-Agent": USER_AGENT,
        "Accept": "text/html, text/markdown;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1",
        "Accept-Encoding": "gzip, deflate",
        "Connection": "close",
        **headers,
    }
    asked = h11.Request(method="GET", target=address.target, headers=list(sent.items()))
    writer.write((line.send(asked) or b"") + (line.send(h11.EndOfMessage()) or b""))
    await writer.drain()
    response: h11.Response | None = None
    body = Body("", most)
    while True:
        event = line.next_event()
        if event is h11.NEED_DATA:
            await asyncio.sleep(0)  # what has arrived already is given without waiting for it
            line.receive_data(await reader.read(PIECE))
        elif isinstance(event, h11.Response):
            response = event
            location = _header(response, b"location")
            if response.status_code in _REDIRECTS and location:
                return _fetched(address, response, body), location
            body = Body(_header(response, b"content-encoding"), most)
        elif isinstance(event, h11.Data):
            body.take(bytes(event.data))
            if body.cut:
                break
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            break
    if response is None:
        raise EOFError("it closed before it answered")
    return _fetched(address, response, body), None


def _fetched(address: Address, response: h11.Response, body: Body) -> Fetched:
    kind, _semicolon, parameters = _header(response, b"content-type").partition(";")
    found = re.search(r"charset\s*=\s*\"?([\w.:-]{1,40})", parameters, re.IGNORECASE)
    return Fetched(
        address=str(address),
        status=response.status_code,
        reason=response.reason.decode("latin-1")[:100],
        media_type=kind.strip().lower()[:100],
        charset=found[1] if found else "",
        body=bytes(body.data),
        cut=body.cut,
    )


def _without(secret: str, fetched: Fetched) -> Fetched:
    """A server may repeat what it was sent; the model is not to read it."""
    return replace(
        fetched,
        reason=fetched.reason.replace(secret, HIDDEN),
        body=fetched.body.replace(secret.encode(), HIDDEN.encode()),
    )


def _header(response: h11.Response, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in response.headers if key == name), "")


class Body:
    """A body as it arrives, decompressed piece by piece so that no bomb unfolds beyond the limit."""

    def __init__(self, encoding: str, most: int) -> None:
        self.data = bytearray()
        self.cut = False
        self._most = most
        self._coding = encoding.strip().lower()
        if self._coding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise ToolError(
                f"The server answered in a compression that was not asked for: {encoding[:40]}."
            )
        # 32 tells zlib to find out whether it is gzip or zlib.
        self._inflate = zlib.decompressobj(32 + zlib.MAX_WBITS)
        self._began = False

    def take(self, piece: bytes) -> None:
        if self._coding in {"", "identity"}:
            self._add(piece)
            return
        # What follows the end is nothing of it, and zlib would gather it, copying all of it each time.
        while piece and not self.cut and not self._inflate.eof:
            room = self._most - len(self.data) + 1
            try:
                self._add(self._inflate.decompress(piece, room))
            except zlib.error as problem:
                if self._began or self._coding != "deflate":
                    raise ToolError("The server's compressed answer cannot be read.") from problem
                self._inflate = zlib.decompressobj(
                    -zlib.MAX_WBITS
                )  # some servers leave the head out
                self._began = True
                continue
            self._began = True
            piece = self._inflate.unconsumed_tail

    def _add(self, plain: bytes) -> None:
        room = self._most - len(self.data)
        self.data += plain[:room]
        self.cut = self.cut or len(plain) > room
