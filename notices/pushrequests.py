"""One request to a push service: encrypted for the browser alone, to a judged address, without redirects, and
bounded in time and size.

It knows no tables; what is sent and what becomes of the answer is `pushing`'s.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import http_ece
import httpx2
from cryptography.hazmat.primitives.asymmetric import ec
from django.utils import timezone
from py_vapid.utils import b64urldecode

from harness.errors import AddressRefused
from net.guarded import guarded_client
from reading.digits import number_of
from reading.moments import moment_in_mail

from .pushaddresses import judge

SECONDS = 10.0
"""From looking the name up to the whole answer."""
MOST_BYTES = 16 * 1024
"""Of the answer, of which nothing is kept."""
MOST_OF_A_PUSH = 3_900
"""Bytes in clear: what push services take is 4096 in all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it; `status` None: nothing was answered, `code` says why in one word."""

    status: int | None = None
    code: str = ""
    retry_after: float = 0.0
    """Seconds the push service asked us to wait."""

    @property
    def word(self) -> str:
        return self.code if self.status is None else f"http_{self.status}"


def encrypted(told: bytes, *, p256dh: str, auth: str) -> bytes:
    """For this browser alone (RFC 8291). Raises ValueError for keys that are none, and for too much."""
    if len(told) > MOST_OF_A_PUSH:
        raise ValueError("longer than a push may be")
    body: bytes = http_ece.encrypt(
        told,
        salt=os.urandom(16),
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=b64urldecode(p256dh.encode("ascii")),
        auth_secret=b64urldecode(auth.encode("ascii")),
        version="aes128gcm",
    )
    return body


def push_client() -> httpx2.AsyncClient:
    return guarded_client(
        judge, timeout=httpx2.Timeout(SECONDS), seconds=SECONDS, most_bytes=MOST_BYTES
    )


async def post(
    client: httpx2.AsyncClient, endpoint: str, body: bytes, headers: dict[str, str]
) -> Answer:
    """Never raises for what a push service does."""
    sent = {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        **headers,
    }
    try:
        answer = await client.post(endpoint, content=body, headers=sent)
    except AddressRefused:
        return Answer(code="address")
    except httpx2.TimeoutException:
        return Answer(code="timeout")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
        return Answer(code="connection")
    return Answer(answer.status_code, "", _retry_after(answer.headers.get("Retry-After", "")))


def _retry_after(value: str) -> float:
    value = value.strip()
    if (seconds := number_of(value, most=999_999_999)) is not None:
        return float(seconds)
    moment = moment_in_mail(value)
    return 0.0 if moment is None else max(0.0, (moment - timezone.now()).total_seconds())
