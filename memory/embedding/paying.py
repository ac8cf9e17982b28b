"""Who pays for what a service of embeddings is asked: a seam, since what is spent is counted above.

An app that counts registers (`count_with`, in its `ready()`); where none does, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

BYTES_PER_TOKEN = 2
"""Text of any language has at least about two bytes a token."""


@dataclass(frozen=True, slots=True)
class Payer:
    organisation: int
    user: int | None
    """Whose alone the text is; None: the organisation's."""


class Counting(Protocol):
    def hold(self, payer: Payer, *, model: str, tokens: int) -> str | None:
        """The id of a call that is about to be made, counted with what it takes at most. None: a budget has
        no room for it, and it is not made."""

    def settle(self, call: str, tokens: int) -> None:
        """It took so many."""


_counting: list[Counting] = []


def count_with(counting: Counting) -> None:
    """Have it asked from now on, in the place of whoever was."""
    _counting[:] = [counting]


def hold(payer: Payer, *, model: str, tokens: int) -> str | None:
    """The same; where nobody counts, an id that stands for nothing."""
    return _counting[0].hold(payer, model=model, tokens=tokens) if _counting else ""


def settle(call: str, tokens: int) -> None:
    if call and _counting:
        _counting[0].settle(call, tokens)


def tokens_at_most(text: str) -> int:
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1


def likely_tokens(texts: Sequence[str]) -> int:
    """What a service that does not say has counted."""
    return sum(map(tokens_at_most, texts)) // 2 + 1
