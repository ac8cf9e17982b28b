"""Which text of each block one client has been sent, so that nothing is repeated and nothing missing.

Deltas may be lost, coalesced or repeated by a snapshot; the stored event has the whole. What goes
out, joined in order, is exactly the stored text. No text goes out before the events that it
comes behind. Pure: sending is the consumer's part.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from live.arriving import Snapshot
from live.items import Delta

from .incoming import Frame

Kind = Literal["text", "thinking", "output"]
"""`output` is what a running command prints; its whole comes as the call's result."""
FRAMES: Mapping[Kind, str] = {
    "text": "text_delta",
    "thinking": "thinking_delta",
    "output": "tool_output_delta",
}

REMEMBERED = 500
"""Finished blocks of which late deltas are still recognised; they come within moments or not at all."""


MAX_PENDING = 64 * 1024
"""Characters of streaming text that may wait for the log; a snapshot replaces more."""


@dataclass(frozen=True, slots=True)
class Placed(Delta):
    after: int = 0
    """The event of the log that it comes behind."""


@dataclass(frozen=True, slots=True)
class PlacedSnapshot(Snapshot):
    after: int = 0


@dataclass(frozen=True, slots=True)
class Whole:
    """A block that ended, as the log has it. `extra` is what else its last frame says (`seq`, …)."""

    block: str
    kind: Kind
    text: str
    extra: Frame


class Ledger:
    """What one client has of the blocks that are arriving."""

    def __init__(self, effort: str = "") -> None:
        self.effort = effort
        """What frames of thinking say."""
        self._sent: dict[str, str] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    def piece(self, delta: Delta) -> list[Frame]:
        """The part of a delta that is new; nothing if something before it is missing, which the next
        snapshot or the stored text brings."""
        return self._grow(delta.block, delta.kind, delta.offset, delta.text)

    def has_begun(self, block: str) -> bool:
        """Whether some of the block was sent, and it has not ended."""
        return block in self._sent

    def snapshot(self, snapshot: Snapshot) -> list[Frame]:
        return [
            frame
            for block in snapshot.blocks
            for frame in self._grow(block.block, block.kind, 0, block.text)
        ]

    def whole(self, whole: Whole) -> Frame:
        """The rest of a block's text, or all of it; always one frame, so that its number is seen.

        A process that was killed may have lost what it had sent: then the stored text replaces it.
        """
        sent = self._sent.pop(whole.block, "")
        self._ended[whole.block] = None
        while len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        about = {"id": whole.block, **whole.extra}
        if not whole.text.startswith(sent):
            return self._frame(f"{whole.kind}_replaced", whole.kind, whole.text, about)
        if whole.kind == "thinking" and not sent:
            return self._frame("thinking", whole.kind, whole.text, about)
        about["offset"] = len(sent)
        return self._frame(FRAMES[whole.kind], whole.kind, whole.text[len(sent) :], about)

    def _grow(self, block: str, kind: Kind, offset: int, text: str) -> list[Frame]:
        sent = self._sent.get(block, "")
        new = text[max(0, len(sent) - offset) :]
        if block in self._ended or offset > len(sent) or not new:
            return []
        self._sent[block] = sent + new
        about: Frame = {"id": block, "offset": len(sent)}
        return [self._frame(FRAMES[kind], kind, new, about)]

    def _frame(self, name: str, kind: Kind, content: str, about: Frame) -> Frame:
        frame: Frame = {"type": name, "content": content}
        if kind == "thinking":
            frame["effort"] = self.effort
        return {**frame, **about}


class PendingText:
    """Streaming text that came sooner than the events before it, which take the road of the log."""

    def __init__(self) -> None:
        self._sent_seq = 0
        self._pending: list[Placed | PlacedSnapshot] = []
        self._characters = 0
        self.overflown = False
        """Some was dropped; a snapshot is needed."""

    def is_next(self, item: Placed | PlacedSnapshot, ledger: Ledger) -> bool:
        """Whether `item` may go out now; otherwise `ready_after` gives it back when it may."""
        if isinstance(item, Placed) and ledger.has_begun(item.block):
            return True
        if item.after <= self._sent_seq:
            return True
        self._characters += _length(item)
        if self._characters > MAX_PENDING:
            self._pending, self._characters, self.overflown = [], 0, True
        else:
            self._pending.append(item)
        return False

    def ready_after(self, seq: int) -> list[Placed | PlacedSnapshot]:
        """What may go out now that the log was sent up to event `seq`, in the order in which it came."""
        self._sent_seq = max(self._sent_seq, seq)
        ready = [item for item in self._pending if item.after <= self._sent_seq]
        if ready:
            self._pending = [item for item in self._pending if item.after > self._sent_seq]
            self._characters = sum(map(_length, self._pending))
        return ready


def _length(item: Placed | PlacedSnapshot) -> int:
    if isinstance(item, Placed):
        return len(item.text)
    return sum(len(block.text) for block in item.blocks)
