"""Who really asks, where a proxy of ours stands in between: the one reader of X-Forwarded-*.

A proxy appends the address it was called from, so what a visitor wrote himself stands further left: of
the list, the entry counts that the outermost of our proxies wrote. Nothing is believed from a peer that
is no proxy of ours, and after this nobody else finds the headers.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from django.conf import settings

from agentsite.logs import App, Receive, Scope, Send

Network = IPv4Network | IPv6Network

_FOR, _PROTO = b"x-forwarded-for", b"x-forwarded-proto"
_SAID_BY_PROXIES = frozenset(
    {_FOR, _PROTO, b"x-forwarded-host", b"x-forwarded-port", b"x-real-ip", b"forwarded"}
)


def client_of(peer: str, headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, str]:
    """The visitor's address, and the scheme he used or "" if no proxy says it.

    `peer` is who called this server, "" for a local socket. Names in lower case.
    """
    if not settings.AGENTSITE_BEHIND_PROXY or not _is_ours(peer):
        return peer, ""
    given = list(headers)
    address = _address(_entry(given, _FOR)) or peer
    scheme = _entry(given, _PROTO).lower()
    return address, scheme if scheme in ("http", "https") else ""


class TrueClient:
    """ASGI: `client` and `scheme` of the scope are the visitor's."""

    def __init__(self, app: App) -> None:
        self.inner = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if settings.AGENTSITE_BEHIND_PROXY and scope["type"] != "lifespan":
            scope = _corrected(scope)
        await self.inner(scope, receive, send)


def _corrected(scope: Scope) -> Scope:
    client = scope.get("client")
    peer = str(client[0]) if client else ""
    address, scheme = client_of(peer, scope["headers"])
    headers = [pair for pair in scope["headers"] if pair[0] not in _SAID_BY_PROXIES]
    corrected = {**scope, "headers": headers}
    if address != peer:
        corrected["client"] = (address, 0)
    if scheme:
        secure = scheme == "https"
        plain, safe = ("ws", "wss") if scope["type"] == "websocket" else ("http", "https")
        corrected["scheme"] = safe if secure else plain
    return corrected


def _entry(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """What the outermost of our proxies said."""
    lines = [value.decode("latin-1") for found, value in headers if found == name]
    entries = [entry.strip() for entry in ",".join(lines).split(",")]
    count: int = settings.AGENTSITE_PROXY_COUNT
    return entries[-min(count, len(entries))]


def _address(entry: str) -> str:
    """Without a port; "" if it is no address."""
    if entry.startswith("["):
        entry = entry[1:].partition("]")[0]
    elif entry.count(":") == 1:
        entry = entry.partition(":")[0]
    try:
        return str(ip_address(entry))
    except ValueError:
        return ""


def _is_ours(peer: str) -> bool:
    return not peer or _is_within(peer, tuple(settings.AGENTSITE_TRUSTED_PROXIES))


@lru_cache(maxsize=1024)
def _is_within(peer: str, networks: tuple[str, ...]) -> bool:
    try:
        found = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return any(found in network for network in map(_network, networks))


@lru_cache(maxsize=64)
def _network(text: str) -> Network:
    return ip_network(text, strict=False)
