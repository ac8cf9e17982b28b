"""Who else keeps secrets that the vault sealed: floors above say so at start-up, so that a new vault
key reaches theirs too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Reseal = Callable[[], int]

_resealers: list[Reseal] = []


def holds_sealed(reseal: Reseal) -> None:
    """Register a function that seals anew, in the caller's transaction, what its floor keeps, and says
    how many secrets that were. Again is the same as once."""
    if reseal not in _resealers:
        _resealers.append(reseal)


def resealers() -> Sequence[Reseal]:
    return tuple(_resealers)
