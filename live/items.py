"""What travels from runs to sockets beside the log: hints, streaming text, and the text so far.

Plain values; who carries them is a hub's part (`local_hub`, `redis_hub`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "thinking", "output"]
"""What a block holds; `output` is what a running command prints."""


@dataclass(frozen=True, slots=True)
class Nudge:
    """The log grew. A reader reads behind what it has; `seq` is 0 where nobody knows how far."""

    seq: int


@dataclass(frozen=True, slots=True)
class Delta:
    """Streaming text."""

    block: str
    kind: Kind
    offset: int
    """Unicode characters of the block before this text."""
    text: str
    continues: str | None = None
    type: Literal["delta"] = "delta"


@dataclass(frozen=True, slots=True)
class BlockClosed:
    block: str


@dataclass(frozen=True, slots=True)
class Lagged:
    """Deltas were dropped for this subscriber; a snapshot brings it up to date."""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A person interrupted: whoever runs the conversation reads the log at once. A hint as well."""


Item = Nudge | Delta | BlockClosed | Lagged | Interrupted


@dataclass(frozen=True, slots=True)
class OpenText:
    """A block that is still arriving, with all of its text so far."""

    block: str
    kind: Kind
    continues: str | None
    text: str
