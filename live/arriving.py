"""Text on its way from a run to whoever follows its conversation: what stands so far, and what ended.

How it looks on a wire is each door's part, bringing it `conversations.following`'s; `outbox` keeps it within
bounds. What streams in is `items`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class OpenBlock:
    block: str
    kind: Literal["text", "thinking", "output"]
    continues: str | None
    text: str
    html: str = ""
    """Of its first `drawn` characters."""
    drawn: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All text that is arriving right now; what is not in it has ended."""

    blocks: Sequence[OpenBlock]
    type: Literal["snapshot"] = "snapshot"


@dataclass(frozen=True, slots=True)
class Closed:
    """The block ended; its unit, if it left one, comes with a `changes` frame."""

    block: str
    type: Literal["closed"] = "closed"
