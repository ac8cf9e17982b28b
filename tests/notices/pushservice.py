"""A push service on loopback, and browsers signed up at it that read what is sent to them.

They decrypt and check signatures by the standards (RFC 8291, RFC 8188, RFC 8292), with none of the code that
encrypts and signs.
"""

from __future__ import annotations

import base64
import json
import secrets
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.patience import PATIENCE


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@dataclass
class BrowserAt:
    endpoint: str
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(16))

    @property
    def subscription(self) -> dict[str, str]:
        return {
            "endpoint": self.endpoint,
            "p256dh": encoded(point_of(self.key.public_key())),
            "auth": encoded(self.secret),
        }

    def read(self, body: bytes) -> dict[str, Any]:
        """What was said, or an exception if it was not said to this browser."""
        salt, _size, length = body[:16], struct.unpack("!L", body[16:20]), body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.key.exchange(ec.ECDH(), theirs)
        info = b"WebPush: info\0" + point_of(self.key.public_key()) + sender
        material = _derived(shared, self.secret, info, 32)
        key = _derived(material, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derived(material, salt, b"Content-Encoding: nonce\0", 12)
        clear = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert clear.endswith(b"\x02")
        said: dict[str, Any] = json.loads(clear[:-1])
        return said


def _derived(material: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(material)


def signed_by(authorization: str) -> tuple[str, dict[str, Any]]:
    """The key that signed, as browsers are given it, and the claims; an exception if it did not."""
    assert authorization.startswith("vapid ")
    parts = dict(part.strip().split("=", 1) for part in authorization[6:].split(","))
    head, claims, signature = parts["t"].split(".")
    assert json.loads(decoded(head))["alg"] == "ES256"
    raw = decoded(signature)
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(parts["k"]))
    key.verify(encode_dss_signature(r, s), f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    return parts["k"], json.loads(decoded(claims))


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


class PushService:
    """`with PushService() as service:`; it answers `status`, with `headers`."""

    def __init__(self) -> None:
        self.status = 201
        self.headers: dict[str, str] = {}
        self.received: list[Received] = []
        self._browsers: dict[str, BrowserAt] = {}
        self._came = threading.Condition()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                service._take(Received(self.path, headers, body))
                self.send_response(service.status)
                for name, value in service.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> PushService:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _take(self, received: Received) -> None:
        with self._came:
            self.received.append(received)
            self._came.notify_all()

    def wait(self) -> None:
        """Until something was sent."""
        with self._came:
            assert self._came.wait_for(lambda: self.received, PATIENCE)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def browser(self, name: str = "first") -> BrowserAt:
        endpoint = f"http://127.0.0.1:{self.port}/push/{name}"
        return self._browsers.setdefault(name, BrowserAt(endpoint))

    def said(self) -> list[dict[str, Any]]:
        """All that was sent so far, each read by the browser that it was sent to."""
        return [self.browser(one.path.rpartition("/")[2]).read(one.body) for one in self.received]
