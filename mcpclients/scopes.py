"""What a client of `/mcp` may be let do there: what its tools take, and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable

from accounts.models import TokenScope

USUAL = (TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE)
"""What a client is told to ask for."""
OFFERED = (*USUAL, TokenScope.APPROVALS_DECIDE)


def known_among(asked: Iterable[str]) -> list[TokenScope]:
    """In our order; words that mean something elsewhere alone are passed over."""
    given = set(asked)
    return [scope for scope in OFFERED if scope in given]
