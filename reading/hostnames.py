"""Addresses that anybody may have written, taken apart, and the names of their hosts in ASCII.

Both normalize a host, and IDNA more than that, in time that grows with the square of its length; so one
that is longer than a name can be is refused before. What a host is to this server, `net.addresses` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from urllib.parse import SplitResult, urljoin, urlsplit

LONGEST_NAME = 253
"""Characters of a host's name (RFC 1035, 2.3.4, without the dot that may end it)."""
LONGEST_ADDRESS = 2_048
"""Characters of an address of which a caller needs to make anything: few servers take longer ones."""

MeantBy = Callable[[str], Collection[str]]
"""Every host that one in its plain form may come to, itself among them."""


def as_written(host: str) -> Collection[str]:
    """`MeantBy` where nobody reads one address out of another."""
    return (host,)


_LONGEST_PLACE = LONGEST_NAME + 64
"""The same with a user and a port."""
_PLACE = re.compile(r"\A[^/?#]*//([^/?#]*)")
_PASSED_OVER = str.maketrans("", "", "\t\r\n")
"""What `urlsplit` drops from the middle of an address."""


def split_address(address: str) -> SplitResult:
    """Raises ValueError for what is no address, for a host longer than one can be and for a port that is
    none; nothing of what is returned raises."""
    _require_short(address)
    parts = urlsplit(address)
    _ = parts.port
    return parts


def is_web_address(text: str) -> bool:
    """Whether it names a place of the web, and nobody who signs in there."""
    try:
        parts = split_address(text)
    except ValueError:
        return False
    # A password may stand there without a name.
    return parts.scheme in {"https", "http"} and bool(parts.hostname) and "@" not in parts.netloc


def joined_address(base: str, address: str) -> str:
    """Where `address` leads from `base`. Raises ValueError as `split_address` does."""
    _require_short(base)
    _require_short(address)
    return urljoin(base, address)


def ascii_name(host: str) -> str:
    """The name as it is looked up. Raises ValueError for one that has no such form or is too long."""
    if len(host.removesuffix(".")) > LONGEST_NAME:
        raise ValueError("the host's name is too long")
    return host if host.isascii() else host.encode("idna").decode()


def _require_short(address: str) -> None:
    if address.isascii():
        return
    found = _PLACE.match(address.translate(_PASSED_OVER))
    if found and len(found[1]) > _LONGEST_PLACE and not found[1].isascii():
        raise ValueError("the host's name is too long")
