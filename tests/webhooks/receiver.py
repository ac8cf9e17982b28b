"""Somebody else's server: takes webhooks over real HTTP and answers as it is told to."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.patience import PATIENCE


@dataclass(frozen=True, slots=True)
class Received:
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: str


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 204
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    drip: Callable[[], bool] | None = None
    """While it says so the body goes on without an end."""
    hold: threading.Event | None = None
    """Nothing is answered before it is set."""


LISTENING: list[str] = []
"""Where receivers of this process have listened, as the operator would list them."""


class Receiver:
    """`with Receiver() as receiver:` listens on loopback. Answers are taken from `answers` in turn; the
    last one stays."""

    def __init__(self, *answers: Answer, context: ssl.SSLContext | None = None) -> None:
        self.answers = list(answers) or [Answer()]
        self.received: list[Received] = []
        self.came = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = receiver._take(Received(self.path, headers, body))
                if answer.hold is not None:
                    answer.hold.wait(PATIENCE)
                self.send_response(answer.status)
                for name, value in answer.headers:
                    self.send_header(name, value)
                if answer.drip is None:
                    self.send_header("Content-Length", str(len(answer.body)))
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    self.wfile.write(answer.body)
                    while answer.drip is not None and answer.drip():
                        self.wfile.write(b"x" * 65_536)
                except OSError:
                    pass

            do_GET = do_POST  # noqa: N815 - what http.server calls it

            def log_message(self, *_args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_args: object) -> None:
                """A client that hangs up is no news here."""

        self._server = Server(("127.0.0.1", 0), Handler)
        LISTENING.append(f"127.0.0.1:{self.port}")
        self._scheme = "http"
        if context is not None:
            self._scheme = "https"
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/hooks"

    def wait_for(self, count: int) -> list[Received]:
        with self.came:
            assert self.came.wait_for(lambda: len(self.received) >= count, PATIENCE), self.received
            return list(self.received)

    def _take(self, request: Received) -> Answer:
        with self.came:
            self.received.append(request)
            self.came.notify_all()
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def self_signed(file: Path) -> ssl.SSLContext:
    """For `localhost` and loopback; `file` is written with the certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
