"""Which text of each block one client has been sent, so that nothing is repeated and nothing missing.

Deltas may be lost, coalesced or repeated by a snapshot; the stored event has the whole. What goes
out, joined in order, is exactly the stored text (S-10). Pure: sending is the consumer's part.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from conversations.protocol import Piece, Snapshot

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

    def piece(self, piece: Piece) -> list[Frame]:
        """The part of a delta that is new; nothing if something before it is missing, which the next
        snapshot or the stored text brings."""
        return self._grow(piece.block, piece.kind, piece.offset, piece.text)

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
