"""What makes vectors of texts, as everybody who uses one knows it. Which one it is, is `chosen`'s part.

Most make them where the server is, in milliseconds. What another machine makes (`service`) no search waits
for: what a message reminds of is found in the transaction that stores it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Vectors = Any
"""A numpy array of float32, a row for each text: of length 1, or 0 where a text says nothing."""
WIDTH = 16
"""Bits of a number in a row that keeps a vector (ADR 77). Part of each embedder's name: a vector of another
width cannot be compared, and is made anew."""
KEPT = f"<f{WIDTH // 8}"
"""The same as numpy calls it."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What cosines of a model mean."""

    floor: float
    """From which on a text is found that shares no word with a question."""
    alike: float
    """From which on two texts are about the same, so that one reminds of the other."""


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """What it is, with all that its vectors depend on: those of another name are made anew."""

    @property
    def reads(self) -> int:
        """Characters of a text that it looks at; of a longer one the beginning."""

    @property
    def floor(self) -> float:
        """The cosine from which on a text is found that shares no word with a question."""

    @property
    def alike(self) -> float:
        """The cosine from which on two texts are about the same, so that one reminds of the other."""

    @property
    def share(self) -> tuple[float, float]:
        """Of a mixed score, where words cover the question, and where they cover nothing of it."""

    @property
    def at_once(self) -> int:
        """Texts of one batch in the background."""

    @property
    def is_here(self) -> bool:
        """It asks no other machine. Else vectors of questions are looked up before (`asking`)."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Of each text; the same for the same, whatever it stands beside, to four digits."""
