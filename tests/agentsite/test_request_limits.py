"""What strangers may have a server keep, tried on both servers as they are started for people."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentsite import environment
from agentsite.local_services import free_port
from agentsite.requestlimits import HEAD_BYTES, HEADERS, LINGERING_PER_ADDRESS
from tests import prepared
from tests.patience import PATIENCE, until

MANAGE = str(environment.BASE_DIR / "manage.py")
MB = 1024 * 1024
HASTY_SECONDS = 3
"""What a server under test gives a head or a stranger's body where it is to be too slow."""
CONNECTIONS = 60

MAKE_TOKEN = """
from django.core.management import call_command
call_command("prepare")
from accounts.actions.organisations import create_organisation
from accounts.actions.tokens import create_token
from accounts.models import User
alice = User.objects.create_user("alice", "alice@example.org", "correct horse battery staple")
acme = create_organisation(actor=alice, name="Acme")
scopes = ["conversations:read", "conversations:write"]
made = create_token(actor=alice, organisation=acme, name="test", scopes=scopes)
print("SECRET " + made.secret)
"""


@dataclass
class Server:
    process: subprocess.Popen[str]
    port: int
    temporary: Path
    secret: str

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def kept(self) -> int:
        """Bytes of temporary files, those without a name too."""
        kept = 0
        for descriptor in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                target = str(descriptor.readlink())
                if target.startswith(str(self.temporary)):
                    kept += descriptor.stat().st_size
            except FileNotFoundError:
                continue
        return kept

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def memory(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def _environment(directory: Path, seconds: float = 3 * PATIENCE) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        **kept,
        "AGENTSITE_ENV_FILE": str(directory / ".env"),
        "AGENTSITE_DATA_DIR": str(directory / "data"),
        "AGENTSITE_HEAD_SECONDS": str(int(seconds)),
        "AGENTSITE_BODY_SECONDS": str(int(seconds)),
        "AGENTSITE_CONNECTIONS_PER_ADDRESS": str(CONNECTIONS),
        "AGENTSITE_SWEEP_SECONDS": "0",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(temporary),
    }


@pytest.fixture(scope="module")
def installation(tmp_path_factory, django_db_setup) -> tuple[Path, str]:
    directory = tmp_path_factory.mktemp("limits")
    prepared.place(directory / "data")
    given = _environment(directory)
    made = subprocess.run(
        [sys.executable, MANAGE, "shell", "-v", "0", "-c", MAKE_TOKEN],
        env=given,
        check=True,
        capture_output=True,
        text=True,
    )
    return directory, made.stdout.partition("SECRET ")[2].strip()


@pytest.fixture(scope="module", params=["up", "serve"])
def server(request, installation) -> Iterator[Server]:
    """daphne by `up`, uvicorn by `serve`; for neither anybody is too slow."""
    yield from _started(request.param, installation, 3 * PATIENCE)


@pytest.fixture(scope="module", params=["up", "serve"])
def hasty(request, installation) -> Iterator[Server]:
    """The same for those who are to be too slow."""
    yield from _started(request.param, installation, HASTY_SECONDS)


def _started(command: str, installation: tuple[Path, str], seconds: float) -> Iterator[Server]:
    directory, secret = installation
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, MANAGE, command, "--port", str(port)],
        env=_environment(directory, seconds),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until(lambda: _listens(port))
        yield Server(process, port, directory / "tmp", secret)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            return b" 200 " in line.recv(1000)
    except OSError:
        return False


def head(path: str, *more: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: localhost", *more, "", ""]).encode()


def answer(line: socket.socket) -> bytes:
    """Until the end; what a reset cuts off is missing."""
    said = b""
    try:
        while piece := line.recv(65536):
            said += piece
    except ConnectionError:
        pass
    return said


def answers(server: Server, heads: list[bytes]) -> list[bytes]:
    """To all of them, which wait side by side."""
    with ExitStack() as stack:
        lines = [stack.enter_context(closing(server.connect())) for _ in heads]
        for line, sent in zip(lines, heads, strict=True):
            with suppress(OSError):
                line.sendall(sent)
        return [answer(line) for line in lines]


def pour(line: socket.socket, size: int, *, chunked: bool) -> None:
    """Send as much as is taken."""
    piece = b"x" * 65536
    framed = b"10000\r\n" + piece + b"\r\n" if chunked else piece
    try:
        for _ in range(size // len(piece)):
            line.sendall(framed)
    except OSError:
        pass


def test_a_stranger_s_long_body_is_refused_before_it_is_sent(server):
    paths = ("/accounts/login/", "/v1/files", "/nowhere/", "/healthz")
    heads = [head(path, f"content-length: {400 * MB}") for path in paths]
    for path, said in zip(paths, answers(server, heads), strict=True):
        assert said.startswith(b"HTTP/1.1 413 "), (path, said[:200])
        assert (b"sign in" in said) == (path == "/v1/files")


@pytest.mark.parametrize("shown", ["", "authorization: Bearer ags_wrong"])
def test_a_body_in_chunks_is_counted_while_it_comes(server, shown):
    before = server.memory()
    lines = [server.connect() for _ in range(4)]
    for line in lines:
        more = [shown] if shown else []
        line.sendall(head("/v1/files", "transfer-encoding: chunked", *more))
    for line in lines:
        pour(line, 8 * MB, chunked=True)
    assert server.kept() <= MB
    assert server.memory() - before < 20 * MB
    for line in lines:
        with closing(line):
            said = answer(line)
            assert said.startswith(b"HTTP/1.1 413 ") or not said
    until(lambda: server.kept() == 0)


def test_a_refusal_is_in_the_words_of_its_door(server):
    marks = {"/v1/sessions": b'"request_too_large"', "/api/chat": b'"error": {"code"'}
    heads = [head(path, f"content-length: {MB}") for path in marks]
    for mark, said in zip(marks.values(), answers(server, heads), strict=True):
        assert mark in said


def test_one_byte_more_than_a_stranger_may_send_is_too_much(server):
    most = 64 * 1024
    for size, status in ((most, b" 403 "), (most + 1, b" 413 ")):  # 403: the form lacks its token
        with closing(server.connect()) as line:
            line.sendall(
                head("/accounts/login/", f"content-length: {size}", "connection: close")
                + b"x" * size
            )
            assert status in answer(line)[:20]


def test_somebody_known_sends_a_large_file(server):
    boundary = "frontier"
    part = (
        f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n'
        "content-type: application/octet-stream\r\n\r\n"
    ).encode()
    body = part + b"x" * (12 * MB) + f"\r\n--{boundary}--\r\n".encode()
    kind = f"content-type: multipart/form-data; boundary={boundary}"
    token = f"x-api-key: {server.secret}"
    for framing in (f"content-length: {len(body)}", "transfer-encoding: chunked"):
        with closing(server.connect()) as line:
            line.sendall(head("/v1/files", kind, token, framing, "connection: close"))
            if framing.startswith("transfer"):
                for start in range(0, len(body), 100_000):
                    piece = body[start : start + 100_000]
                    line.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                line.sendall(b"0\r\n\r\n")
            else:
                line.sendall(body)
            said = answer(line)
        assert said[9:12] == b"200", said[:400]
        assert str(12 * MB).encode() in said
    until(lambda: server.kept() == 0)


def test_what_nobody_reads_is_not_kept(server):
    boundary, size = "frontier", 20 * MB
    kind = f"content-type: multipart/form-data; boundary={boundary}"
    token = f"x-api-key: {server.secret}"
    part = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    body = part.encode() + b"x" * size + f"\r\n--{boundary}--\r\n".encode()
    with closing(server.connect()) as line:
        length = f"content-length: {len(body)}"
        line.sendall(head("/v1/files", kind, token, length, "connection: close") + body)
        uid = json.loads(answer(line).partition(b"\r\n\r\n")[2])["id"]
    asked = head(f"/v1/files/{uid}/content", token, "connection: close", method="GET")
    before = server.memory()
    lines = [server.connect() for _ in range(8)]
    for line in lines:
        line.sendall(asked)
    time.sleep(2)
    grown = server.memory() - before
    got = [len(answer(line).partition(b"\r\n\r\n")[2]) for line in lines[:2]]
    for line in lines:
        line.close()
    assert got == [size, size], "whoever reads late gets it whole"
    assert grown < 60 * MB


def test_somebody_known_may_not_send_more_than_the_route_takes(server):
    with closing(server.connect()) as line:
        token = f"x-api-key: {server.secret}"
        line.sendall(head("/v1/sessions", token, f"content-length: {33 * MB}"))
        said = answer(line)
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b"sign in" not in said


def is_cut_while_it_drips(line: socket.socket, piece: bytes) -> bool:
    """Send a piece again and again; whether the server had enough."""
    end = time.monotonic() + PATIENCE
    line.settimeout(0.2)
    while time.monotonic() < end:
        try:
            line.sendall(piece)
            if not line.recv(65536):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


DRIPPING = {
    "body": (head("/accounts/login/", "content-length: 5000"), b"x"),
    "chunks": (head("/accounts/login/", "transfer-encoding: chunked"), b"1\r\nx\r\n"),
    "headers": (b"POST /accounts/login/ HTTP/1.1\r\nhost: localhost\r\n", b"x-more: 1\r\n"),
    "one header": (b"POST / HTTP/1.1\r\nhost: localhost\r\nx-long: ", b"x"),
    "empty lines": (b"", b"\r\n"),
    # Behind a whole request, with which it comes.
    "second request": (head("/healthz", method="GET") + b"GET / HTTP/1.1\r\nx: ", b"x"),
}


def test_no_slow_sender_keeps_a_connection(hasty):
    def is_cut(name: str) -> bool:
        begin, piece = DRIPPING[name]
        with closing(hasty.connect()) as line:
            if begin:
                line.sendall(begin)
            return is_cut_while_it_drips(line, piece)

    def stops(begin: bytes) -> bytes:
        with closing(hasty.connect()) as line:
            line.sendall(begin)
            return answer(line)

    with ThreadPoolExecutor(len(DRIPPING) + 2) as senders:
        cut = {name: senders.submit(is_cut, name) for name in DRIPPING}
        body = senders.submit(stops, head("/accounts/login/", "content-length: 1000") + b"begun")
        silent = senders.submit(stops, b"")
        assert {name for name in DRIPPING if not cut[name].result()} == set()
        assert body.result().startswith(b"HTTP/1.1 408 ")
        silent.result()


def test_heads_are_bounded(server):
    too_long = b"GET / HTTP/1.1\r\nhost: localhost\r\nx-a: " + b"a" * (4 * HEAD_BYTES)
    heads = {
        head("/" + "a" * 9000, method="GET"): (b"414",),
        head("/", *["x-a: 1"] * (HEADERS + 1), method="GET"): (b"431", b"400"),
        head("/", "x-a: " + "a" * HEAD_BYTES, method="GET"): (b"431", b"400"),
        too_long: (b"431", b"400"),
    }
    for statuses, said in zip(heads.values(), answers(server, list(heads)), strict=True):
        assert said[9:12] in statuses or not said, said[:100]
        assert len(said) < 2000


def test_few_slow_bodies_of_one_address_are_under_way_at_once(server):
    """More than that wait for no deadline: they are told at once that there are too many."""
    too_many = 6
    lines = [server.connect() for _ in range(LINGERING_PER_ADDRESS + too_many)]
    for line in lines:
        line.sendall(head("/accounts/login/", "content-length: 1000") + b"begun")
    told: set[socket.socket] = set()

    def all_are_told() -> bool:
        told.update(select.select(set(lines) - told, [], [], 0)[0])
        return len(told) >= too_many

    until(all_are_told)
    answers = [answer(line)[9:12] for line in told]
    for line in lines:
        line.close()
    assert answers == [b"429"] * too_many


def test_an_address_has_so_many_connections_and_no_more(server):
    lines = []
    try:
        for _ in range(CONNECTIONS):
            line = server.connect()
            line.sendall(b"GET ")
            lines.append(line)
        with closing(server.connect()) as one_more:
            assert answer(one_more).startswith(b"HTTP/1.1 503 ")
    finally:
        for line in lines:
            line.close()
    until(lambda: _listens(server.port))


def test_sockets_leave_the_count_when_they_end(server):
    def handshake() -> bytes:
        with closing(server.connect()) as line:
            line.settimeout(PATIENCE)
            key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
            upgrade = ("upgrade: websocket", "connection: Upgrade", "sec-websocket-version: 13")
            line.sendall(head("/api/chat/x/ws", *upgrade, key, method="GET"))
            return bytes(line.recv(1000))

    for _ in range(CONNECTIONS + 20):
        assert b" 101 " in handshake()


def test_nothing_of_all_this_is_left_behind(server):
    until(lambda: server.kept() == 0)
    assert not list(server.temporary.glob("tmp*"))
