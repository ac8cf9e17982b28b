"""Where a client may have answers sent: https, or http on the person's own machine (RFC 8252, 7.3).

Schemes of programs are not taken: any program of a machine may claim one.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult

from reading.hostnames import LONGEST_NAME, split_address

LONGEST = 500
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""What an address consists of, without quotes, backslashes, angle brackets and the like."""
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")


def is_redirect(uri: str) -> bool:
    """Whether a client may register it."""
    parts = _parts(uri)
    return parts is not None and (parts.scheme == "https" or _is_loopback(parts))


def fits(asked: str, registered: str) -> bool:
    """The same address exactly; on the person's own machine any port, which a program gets when it starts."""
    if asked == registered:
        return is_redirect(asked)
    one, other = _parts(asked), _parts(registered)
    if one is None or other is None or not (_is_loopback(one) and _is_loopback(other)):
        return False
    return (one.hostname, one.path, one.query) == (other.hostname, other.path, other.query)


def is_on_her_machine(uri: str) -> bool:
    parts = _parts(uri)
    return parts is not None and _is_loopback(parts)


def host_of(uri: str) -> str:
    """As people are shown it."""
    return split_address(uri).netloc


def _parts(uri: str) -> SplitResult | None:
    if len(uri) > LONGEST or not _PLAIN.fullmatch(uri) or "#" in uri:
        return None
    try:
        parts = split_address(uri)
    except ValueError:
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else (parts.hostname or "")
    written = host if parts.port is None else f"{host}:{parts.port}"
    # In one spelling, so that no reader takes another host from it.
    if parts.netloc != written or len(host) > LONGEST_NAME or not _HOST.fullmatch(host):
        return None
    return parts if parts.scheme in {"https", "http"} else None


def _is_loopback(parts: SplitResult) -> bool:
    return parts.scheme == "http" and parts.hostname in LOOPBACK
