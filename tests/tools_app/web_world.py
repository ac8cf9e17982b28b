"""A small internet on loopback: names that resolve to public addresses, and servers behind them.

What stands in for the world is its name service and its wires (`resolve`, `connect`); judging, pinning,
fetching and reading are the product's.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sandbox.egress import Decision, Streams
from sandbox.policy import Policy, parse_policy
from tools_app.web.client import Egress

PUBLIC = "93.184.216.34"
OTHER = "93.184.216.35"

Answer = bytes | Callable[[bytes], bytes]


def http(
    body: bytes | str = b"",
    *,
    status: str = "200 OK",
    kind: str = "text/html; charset=utf-8",
    **headers: str,
) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class World:
    """`answers` maps host and path to what the server there sends; `requests` keeps what came."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.names: dict[str, list[str]] = {"site.example": [PUBLIC], "other.example": [OTHER]}
        self.requests: list[bytes] = []
        self.connections: list[tuple[str, int]] = []
        self.decisions: list[Decision] = []
        self.hang = False
        self.unreachable = False

    async def start(self) -> None:
        self._plain = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._tls: asyncio.Server | None = None
        self.trusted = ssl.create_default_context()

    async def start_tls(self, folder: Path, host: str) -> None:
        """A server for https, with a certificate for `host` that this world's clients trust."""
        bundle = folder / "site.pem"
        bundle.write_bytes(_certificate(host))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(bundle)
        self.trusted.load_verify_locations(bundle)
        self._tls = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)

    async def close(self) -> None:
        for server in (self._plain, self._tls):
            if server is not None:
                server.close()

    def egress(self, policy: Policy) -> Egress:
        return Egress(
            policy.endpoints,
            on_decision=self.decisions.append,
            resolve=self.resolve,
            connect=self.connect,
            tls=self.trusted,
        )

    async def resolve(self, host: str, _port: int) -> list[str]:
        if host in self.names:
            return self.names[host]
        if host.replace(".", "").isdigit() or ":" in host:
            return [host]
        raise OSError("no such name")

    async def connect(self, address: str, port: int) -> Streams:
        self.connections.append((address, port))
        if self.unreachable:
            raise ConnectionRefusedError("nobody listens there")
        server = self._tls if port == 443 else self._plain
        assert server is not None, "this world has no https"
        return await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            if self.hang:
                await asyncio.sleep(60)
            path = head.split(b" ")[1].decode()
            host = next(
                line[6:].decode()
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"host: ")
            )
            answer = self.answers.get(host + path, http("Nothing here.", status="404 Not Found"))
            writer.write(answer(head) if callable(answer) else answer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()


def _certificate(host: str) -> bytes:
    """A key and a certificate for `host` that it signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(pem, form, serialization.NoEncryption()) + certificate.public_bytes(
        pem
    )


def pdf(*pages: str, title: str = "") -> bytes:
    """A small PDF with one line of text on each page."""
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for place, words in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({words}) Tj ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * place} 0 R >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    objects.append(f"<< /Title ({title}) >>")
    body, places = b"%PDF-1.7\n", []
    for number, text in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size, info = len(objects) + 1, len(objects)
    trailer = f"<< /Size {size} /Root 1 0 R /Info {info} 0 R >>"
    return (
        body
        + (
            f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n{trailer}\n"
            f"startxref\n{len(body)}\n%%EOF\n"
        ).encode()
    )


def policy_for(*hosts: str, **more: object) -> Policy:
    """An environment's policy that lists these hosts on the ports 80 and 443."""
    endpoints = [{"host": host, "ports": [80, 443], **more} for host in hosts]
    return parse_policy({"network_policies": {"web": {"endpoints": endpoints}}} if hosts else {})
