"""Where a client may have answers sent: https, or to a program on the person's own machine, by http on a
loopback address or by a scheme of its own (RFC 8252, 7).

Any program of a machine may claim a scheme; the code that it catches so is of no use to it without the proof
of the one that asked (PKCE, which nobody goes without).
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult

from django.conf import settings

from reading.hostnames import LONGEST_NAME, split_address

LONGEST = 500
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""What an address consists of, without quotes, backslashes, angle brackets and the like."""
_PROGRAM = re.compile(r"([a-z][a-z0-9+.-]{1,60}):/{1,2}[^/:@?]")
"""Of a scheme, and one spelling of what follows it."""
_NEVER = frozenset(
    {"about", "blob", "chrome", "data", "file", "filesystem", "ftp", "http", "https"}
    | {"javascript", "vbscript", "view-source", "ws", "wss"}
)
"""Schemes that browsers themselves do something with."""
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")


def is_redirect(uri: str) -> bool:
    """Whether a client may register it."""
    parts = _parts(uri)
    if parts is None:
        return bool(program_of(uri))
    return parts.scheme == "https" or _is_loopback(parts)


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
    return _is_loopback(parts) if parts is not None else bool(program_of(uri))


def program_of(uri: str) -> str:
    """The scheme by which a program of her machine is called; empty: it is none. One that its maker's domain
    stands in (`com.example.notes`), as RFC 8252 has it, or one that the operator lists."""
    found = _PROGRAM.match(uri)
    if found is None or len(uri) > LONGEST or not _PLAIN.fullmatch(uri) or "#" in uri:
        return ""
    scheme = found[1]
    listed = "." in scheme.strip(".") or scheme in settings.AGENTSITE_MCP_PROGRAM_SCHEMES
    return scheme if listed and scheme not in _NEVER else ""


def host_of(uri: str) -> str:
    """As people are shown it."""
    scheme = program_of(uri)
    return f"{scheme}:" if scheme else split_address(uri).netloc


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
