"""What the two dialects of the stand-in share: the shape of a dialect, and errors as HTTP answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.errors import (
    BadCredentials,
    BadRequest,
    BillingRefused,
    ContextTooLong,
    Overloaded,
    ProviderError,
    RateLimited,
    UnknownModel,
)
from harness.messages import ModelRequest
from providers.scripted import Call, Reply, Think


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error as a service states it."""

    status: int
    kind: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpFault(Exception):
    """In a script: answer with exactly this. `body` is JSON, or bytes sent as they are."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = dict(headers or {})


class Dialect(Protocol):
    """How one API writes a reply as server-sent events."""

    def check(self, body: Any, betas: str) -> None:
        """Raise `Refused` when the request breaks a rule. `betas` is what its header names."""

    def parse(self, body: Mapping[str, Any]) -> ModelRequest: ...

    def opening(self, reply: Reply) -> bytes: ...

    def block_start(self, kind: str) -> bytes: ...

    def delta(self, kind: str, text: str) -> bytes: ...

    def block_stop(self, kind: str, part: object) -> bytes: ...

    def redacted(self, part: Think) -> bytes: ...

    def call(self, part: Call, chunk: int) -> bytes: ...

    def closing(self, reply: Reply) -> bytes: ...

    def error_event(self, trouble: Trouble) -> bytes: ...

    def error_body(self, trouble: Trouble) -> Any: ...


def trouble_of(error: BaseException) -> Trouble:
    """How a service would report `error`; errors that no service reports count as its own fault."""
    message = str(error)
    headers: dict[str, str] = {}
    if isinstance(error, ProviderError) and error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
    match error:
        case RateLimited():
            return Trouble(429, "rate_limit_error", message, headers)
        case Overloaded():
            status = error.status or 529
            return Trouble(status, _overload_kind(status), message, headers)
        case BadCredentials():
            status = error.status or 401
            kind = "authentication_error" if status == 401 else "permission_error"
            return Trouble(status, kind, message)
        case BillingRefused():
            return Trouble(402, "billing_error", message)
        case UnknownModel():
            return Trouble(404, "not_found_error", f"model: {message}")
        case ContextTooLong():
            return Trouble(400, "invalid_request_error", f"prompt is too long: {message}")
        case BadRequest():
            return Trouble(error.status or 400, "invalid_request_error", message)
        case ProviderError():
            return Trouble(400, "invalid_request_error", message)
        case _:
            return Trouble(500, "api_error", f"{type(error).__name__}: {message}")


def _overload_kind(status: int) -> str:
    return "overloaded_error" if status == 529 else "api_error"


def dumped(value: Any) -> str:
    """JSON as services send it: characters as they are, halves of characters escaped, no spaces."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text
