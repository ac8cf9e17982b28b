"""What pages of other sites may send to the doors for programs, and read of their answers.

Plain lists for `settings`; which sites those are says AGENTSITE_CORS_ORIGINS, and the protocol is
django-cors-headers'. What such pages may never use are cookies (`foreignpages`, `origins`).
"""

from __future__ import annotations

from urllib.parse import urlsplit

_LETTING_IN = r"^/oauth/(?:token|revoke|register)$|^/\.well-known/oauth-"
TOKEN_DOORS = rf"^/(?:v1|v0\.1|api)/|^/(?:agui|mcp)$|{_LETTING_IN}"
"""The addresses that take a token, and those at which clients of `/mcp` get one."""
NO_DOOR = r"(?!)"

ALLOWED_HEADERS = (
    "accept",
    "accept-language",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "authorization",
    "content-type",
    "idempotency-key",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "user-agent",
    "x-api-key",
    "x-request-id",
    # What the SDKs of /v1 tell of themselves. A list: `*` would not cover `authorization`.
    *(
        f"x-stainless-{name}"
        for name in (
            "arch",
            "async",
            "custom-poll-interval",
            "helper",
            "helper-method",
            "lang",
            "os",
            "package-version",
            "poll-helper",
            "raw-response",
            "read-timeout",
            "retry-count",
            "runtime",
            "runtime-version",
            "stream-helper",
            "timeout",
        )
    ),
)
EXPOSED_HEADERS = (
    "content-disposition",
    "link",
    "request-id",
    "retry-after",
    "www-authenticate",
    "x-next-cursor",
    "x-request-id",
    "x-should-retry",
)


def is_origin(text: str) -> bool:
    """Whether it is scheme, host and perhaps a port, as browsers write it, and nothing else."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.hostname or "*" in text:
        return False
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    written = f"{parts.scheme}://{host}" + (f":{port}" if port else "")
    return text == written
