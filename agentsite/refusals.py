"""What a request gets that no view will see: an answer in the shape of the door it came to."""

from __future__ import annotations

import json
from dataclasses import dataclass

from accounts.api.request_ids import current_request_id


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    code: str
    message: str
    hint: str
    retry_after: int = 0


_REASONS = {
    408: "Request Timeout",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
_V1 = {408: "timeout_error", 413: "request_too_large", 429: "rate_limit_error"}


def too_large(most: int, *, known: bool) -> Refusal:
    return Refusal(
        413,
        "too_large" if known else "anonymous_body_too_large",
        f"The request's body has more than {most:,} bytes.",
        "Send less, or in several requests."
        if known
        else "That is the most before sign-in: sign in, or show a valid token.",
    )


TOO_SLOW = Refusal(
    408, "body_too_slow", "The request's body did not come in time.", "Send it again, faster."
)
TOO_MANY_SLOW = Refusal(
    429,
    "too_many_uploads",
    "Too many slow requests come from this address.",
    "Wait until they have ended.",
    retry_after=10,
)
HEAD_TOO_SLOW = Refusal(
    408, "head_too_slow", "The request's headers did not come in time.", "Send it again."
)
HEAD_TOO_LARGE = Refusal(
    431, "head_too_large", "The request's headers are too many or too long.", "Send fewer."
)
ADDRESS_TOO_LONG = Refusal(
    414, "address_too_long", "The request's address is too long.", "Put the data into the body."
)
OTHER_CODING = Refusal(
    415, "other_coding", "The request's body is not said to be in UTF-8.", "Send it in UTF-8."
)
UNAVAILABLE = Refusal(
    503, "unavailable", "The server cannot look up who you are.", "Try again.", retry_after=5
)
TOO_MANY_CONNECTIONS = Refusal(
    503,
    "too_many_connections",
    "Too many connections are open from this address.",
    "Close some, or wait.",
    retry_after=10,
)


def answer_of(path: str, refusal: Refusal) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body. The connection ends with it."""
    kind, body = "application/json", b""
    if path.startswith("/v1/"):
        error = {
            "type": _V1.get(refusal.status, "invalid_request_error"),
            "message": refusal.message,
            "details": {"error_code": refusal.code, "hint": refusal.hint},
        }
        body = json.dumps(
            {"type": "error", "error": error, "request_id": current_request_id()}
        ).encode()
    elif path.startswith(("/api/", "/v0.1/", "/agui", "/mcp")):
        given = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
        body = json.dumps({"error": given}).encode()
    else:
        kind, body = "text/plain; charset=utf-8", f"{refusal.message} {refusal.hint}\n".encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
    ]
    if refusal.retry_after:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    return headers, body


def whole_answer(path: str, refusal: Refusal) -> bytes:
    """The same as it goes over the wire, for those who stand before any application."""
    headers, body = answer_of(path, refusal)
    lines = [f"HTTP/1.1 {refusal.status} {_REASONS[refusal.status]}".encode()]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", body])
