"""How often an address may register clients and exchange secrets, and a person have documents read.

Counted in the cache, like failed sign-ins (`accounts.lockout`).
"""

from __future__ import annotations

import time

from django.core.cache import cache
from django.http import HttpRequest

from accounts.addresses import neighbourhood
from harness.errors import TooMany

MINUTE, HOUR = 60, 3600


def count(kind: str, whose: str, *, most: int, seconds: int) -> None:
    """Raises TooMany past `most` within these seconds; 0: any number."""
    if not most:
        return
    window, spent = divmod(int(time.time()), seconds)
    key = f"mcp-client:{kind}:{whose}:{window}"
    cache.add(key, 0, timeout=seconds)
    try:
        used = cache.incr(key)
    except ValueError:  # it ran out in between
        return
    if used > most:
        raise TooMany("Too many requests.", retry_after=seconds - spent)


def address_of(request: HttpRequest) -> str:
    return neighbourhood(request.META.get("REMOTE_ADDR", ""))
