"""Attacks by connections: many that are half open, bodies and answers that do not go on, on both servers."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from agentsite.requestlimits import LINGERING_PER_ADDRESS
from conversations.log import append
from harness.content import Text
from harness.events import AgentMessage
from harness.history import Entry
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.visitors import Line, Visitor, raw
from tests.attack_web.waits import Memory, Waits
from tests.attack_web.world import World
from tools_app.workspace import workspace_for

SUBJECT = "connections"
MANY = 40
MOST = 120
"""What the site under attack lets one address have open."""
LIMIT = 3.0
"""Seconds that a head and a stranger's body may take there."""
SLACK = 5.0
FORMS = ("daphne", "uvicorn")
HOST = b"Host: 127.0.0.1\r\n"
BODY = b"POST /accounts/login/ HTTP/1.1\r\n" + HOST + b"Content-Length: 60000\r\n\r\n"
HEADS = {
    "heads that do not end": b"GET / HTTP/1.1\r\n" + HOST + b"X-A: ",
    "bodies that do not go on": BODY + b"begun",
    "bodies in chunks that do not go on": (
        b"POST /v1/files HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n"
    ),
    "connections on which nothing is said": b"",
    "sockets that are never shaken hands on": (
        b"GET /api/chat/x/ws HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    ),
}


def _address(world: World, form: str) -> str:
    return world.address if form == "daphne" else world.second.address


def _open(address: str, source: str, sent: bytes) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    line = socket.create_connection((host, int(port)), timeout=5, source_address=(source, 0))
    line.setblocking(False)
    if sent:
        line.send(sent)
    return line


def _still_open(lines: Sequence[socket.socket], drip: bytes) -> int:
    """How many are, after one more byte on each."""
    count = 0
    for line in lines:
        try:
            if drip:
                line.send(drip)
            if line.recv(65_536) == b"":
                continue
        except BlockingIOError:
            pass
        except OSError:
            continue
        count += 1
    return count


def _slow(sent: bytes, form: str, world: World) -> Got:
    address, source = _address(world, form), world.source()
    drip = b"" if not sent or sent.endswith(b"\r\n") else b"x"
    with ExitStack() as kept, Waits(world, address) as waits:
        began = time.monotonic()
        lines = [kept.enter_context(_open(address, source, sent)) for _ in range(MANY)]
        tried(_still_open(lines, b""), "none was let in")
        while (left := _still_open(lines, drip)) and time.monotonic() - began < LIMIT + SLACK:
            time.sleep(0.25)
    return f"{left} of {MANY} are open after {LIMIT + SLACK:g} s" if left else waits.got


for _form in FORMS:
    for _label, _sent in HEADS.items():
        attack(
            SUBJECT,
            f"{_form}: {_label}",
            "forty at once from one address, a byte now and then",
            quick=_label in ("heads that do not end", "bodies that do not go on"),
        )(partial(_slow, _sent, _form))


def _lingering(form: str, world: World) -> Got:
    """More slow bodies of one address than may be under way."""
    address, source = _address(world, form), world.source()
    with ExitStack() as kept:
        lines = [kept.enter_context(_open(address, source, BODY + b"x")) for _ in range(MANY)]
        time.sleep(2.5)  # before any of them is late
        told = 0
        for line in lines:
            try:
                told += b" 429 " in line.recv(100)[:20]
            except OSError:
                continue
    under_way = MANY - told
    return f"{under_way} are under way" if under_way > LINGERING_PER_ADDRESS else ""


def _crowd(form: str, world: World) -> Got:
    """One address takes all it may have; it gets no more, and everybody else is served."""
    address, source = _address(world, form), world.source()
    with ExitStack() as kept, Waits(world, address) as waits:
        for _ in range(MOST):
            kept.enter_context(_open(address, source, b"GET "))
        time.sleep(0.3)
        more = raw(
            address,
            b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
            seconds=5,
            source=source,
        )
    return "it gets one more" if b" 200 " in more[:20] else waits.got


def _unread(form: str, world: World) -> Got:
    """Downloads that nobody reads: what was sent for is not kept in memory for them."""
    address = _address(world, form)
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    (workspace_for(conversation.uid) / "large").write_bytes(b"x" * 30_000_000)
    asked = (
        f"GET /api/files/{conversation.uid}/large HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {world.olgas}\r\n\r\n"
    ).encode()
    pid = world.site.pid if form == "daphne" else world.second.pid
    with ExitStack() as kept, Memory(pid) as taken, Waits(world, address) as waits:
        for _ in range(12):
            line = _open(address, world.source(), asked)
            kept.enter_context(line)
        time.sleep(3)
    if taken.grown > 200_000_000:
        return f"the server keeps {taken.grown} bytes for whoever does not read"
    return waits.got


def _unread_sockets(form: str, world: World) -> Got:
    """Sockets that ask for a long log from its beginning, and read nothing of it."""
    address = _address(world, form)
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    message = AgentMessage(content=(Text(text="x" * 8_000),))
    append(conversation.pk, [Entry.of(message) for _ in range(4_000)])
    asked = (
        f"GET /api/chat/{conversation.uid}/ws?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {world.olgas}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()
    pid = world.site.pid if form == "daphne" else world.second.pid
    with ExitStack() as kept, Memory(pid) as taken, Waits(world, address) as waits:
        for _ in range(12):
            kept.enter_context(_open(address, world.source(), asked))
        time.sleep(6)
    if taken.grown > 200_000_000:
        return f"the server keeps {taken.grown} bytes for whoever does not read"
    return waits.got


def _pipelined(form: str, world: World) -> Got:
    """Hundreds of requests in one go, of which no answer is read."""
    address = _address(world, form)
    many = (b"GET /accounts/login/ HTTP/1.1\r\n" + HOST + b"\r\n") * 400
    with ExitStack() as kept, Waits(world, address) as waits:
        for _ in range(6):
            line = _open(address, world.source(), b"")
            kept.enter_context(line)
            try:
                line.send(many)
            except OSError:
                continue
        time.sleep(2)
    return waits.got


def _silent_sockets(form: str, world: World) -> Got:
    """Sockets of nobody, who says nothing."""
    address, source = _address(world, form), world.source()
    path = f"/api/chat/{world.conversation.uid}/ws"
    handshake = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()
    with ExitStack() as kept, Waits(world, address) as waits:
        lines = [kept.enter_context(_open(address, source, handshake)) for _ in range(MANY)]
        end = time.monotonic() + 25
        while (left := _still_open(lines, b"")) and time.monotonic() < end:
            time.sleep(0.5)
    return f"{left} of {MANY} are open after 25 s" if left else waits.got


def _many_sockets(form: str, world: World) -> Got:
    """Sockets of one person, far more than she has windows, each sending frames as fast as it can."""
    address = _address(world, form)
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    path = f"/api/chat/{conversation.uid}/ws"
    with ExitStack() as kept, Waits(world, address) as waits:
        lines = [kept.enter_context(Line(address, path, token=world.olgas)) for _ in range(20)]
        for line in lines:
            if line.refused:
                continue
            for _ in range(50):
                line.send({"type": "resync"})
    return waits.got


for _form in FORMS:
    for _label, _tries, _act, _quick in (
        ("more connections than one may have", "takes all, and asks for one more", _crowd, True),
        ("more slow bodies than one may have", "forty at once from one address", _lingering, False),
        (
            "downloads that nobody reads",
            "asks for files of thirty megabytes, reads none",
            _unread,
            True,
        ),
        (
            "sockets that nobody reads",
            "asks for thirty megabytes, reads none",
            _unread_sockets,
            False,
        ),
        ("requests in one go", "hundreds in one go, whose answers nobody reads", _pipelined, False),
        ("sockets of nobody", "shakes hands, and says nothing", _silent_sockets, False),
        ("sockets of one person", "twenty with fifty frames each", _many_sockets, False),
    ):
        attack(SUBJECT, f"{_form}: {_label}", _tries, quick=_quick)(partial(_act, _form))


@control(
    SUBJECT,
    "forty at once",
    "as many connections of one address, each with a request, are answered",
)
def _honest(world: World) -> Got:
    for form in FORMS:
        address, source = _address(world, form), world.source()
        asked = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        with ExitStack() as kept:
            lines = [kept.enter_context(_open(address, source, asked)) for _ in range(MANY)]
            answered = 0
            for line in lines:
                line.settimeout(10)
                answered += b" 200 " in line.recv(100)
        if answered < MANY:
            return f"{form}: {answered} of {MANY} were answered"
    return ""


@control(SUBJECT, "a slow person's form", "is taken, if it comes within its time")
def _slow_person(world: World) -> Got:
    body = b"login=nobody&password=wrong"
    head = b"POST /accounts/login/ HTTP/1.1\r\n" + HOST + b"Connection: close\r\n"
    head += b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    for form in FORMS:
        host, _, port = _address(world, form).removeprefix("http://").partition(":")
        with socket.create_connection(
            (host, int(port)), timeout=10, source_address=(world.source(), 0)
        ) as line:
            line.sendall(head + body[:10])
            time.sleep(1)
            line.sendall(body[10:])
            said = line.recv(1_000)
        # 403: the form lacks what a page would have given it.
        if not said.startswith((b"HTTP/1.1 403", b"HTTP/1.1 200")):
            return f"{form}: {said[:100]!r}"
    return ""


@control(SUBJECT, "a file that is read", "comes whole from both servers")
def _read(world: World) -> Got:
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    (workspace_for(conversation.uid) / "file").write_bytes(b"x" * 3_000_000)
    for form in FORMS:
        with Visitor(_address(world, form), token=world.olgas) as program:
            got = program.get(f"/api/files/{conversation.uid}/file").content
        if got != b"x" * 3_000_000:
            return f"{form}: {len(got)} bytes"
    return ""
