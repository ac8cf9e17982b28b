"""Whose page a socket may come from. Browsers say so; programs say nothing.

A page of ours may use its session's cookie. Whoever sends no Origin is no browser, and gets in with a
token or not at all: its cookies are not looked at. What is a page of ours is what Django says of forms:
scheme, host and port are those of the request, or one of CSRF_TRUSTED_ORIGINS. Pages that
AGENTSITE_CORS_ORIGINS lets in may open the socket of /api, as programs do: without their cookies.
"""

from __future__ import annotations

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from agentsite.logs import App, Receive, Scope, Send
from reading.hostnames import split_address

_SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
_PORTS = {"http": 80, "https": 443}
_ON_LOOPBACK = [".localhost", "127.0.0.1", "[::1]"]


class OriginGuard:
    """ASGI, for sockets: refuses foreign pages, takes the cookies from what is no page of ours."""

    def __init__(self, app: App) -> None:
        self.inner = app
        self._denied: Any = WebsocketDenier.as_asgi()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origins = [value for name, value in scope.get("headers", ()) if name == b"origin"]
        if origins:
            origin = origins[0].decode("latin-1") if len(origins) == 1 else ""
            if is_our_page(origin, scope):
                await self.inner(scope, receive, send)
                return
            if not (scope["path"].startswith("/api/") and _may_use_tokens(origin)):
                await self._denied(scope, receive, send)
                return
        headers = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
        await self.inner({**scope, "headers": headers}, receive, send)


def is_our_page(origin: str, scope: Scope) -> bool:
    named = _triple(origin)
    if named is None:
        return False
    if any(named == _triple(trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS):
        return True
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1:
        return False
    host = hosts[0].decode("latin-1")
    allowed = settings.ALLOWED_HOSTS or (_ON_LOOPBACK if settings.DEBUG else [])
    if not validate_host(split_domain_port(host)[0], allowed):
        return False
    return named == _triple(f"{_SCHEMES[scope.get('scheme') or 'ws']}://{host}")


def _may_use_tokens(origin: str) -> bool:
    named = _triple(origin)
    return named is not None and (
        settings.CORS_ALLOW_ALL_ORIGINS
        or any(named == _triple(allowed) for allowed in settings.CORS_ALLOWED_ORIGINS)
    )


def _triple(origin: str) -> tuple[str, str, int] | None:
    """Scheme, host and port, or None for what is no origin (`null`, say)."""
    try:
        parts = split_address(origin)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]
