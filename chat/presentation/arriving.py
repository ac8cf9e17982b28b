"""What of the text that is arriving can be drawn already, for one reader who follows it.

A block of Markdown is drawn when nothing to come can change it; what is open stays plain text. The
answer as a whole is drawn by its unit, at the end (`units`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chat.protocol import Rendered
from live.arriving import OpenBlock, Snapshot
from live.hub import Delta
from rendering.markdown import to_html
from rendering.streaming import Growing

AT_ONCE = 4
"""Texts that are drawn while they arrive; an agent writes one, and further ones stay plain until they end."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A stretch of a text that is to be drawn."""

    block: str
    start: int
    text: str

    def drawn(self) -> Rendered:
        """To be called in a thread: it may wait for another process."""
        return Rendered(self.block, self.start, self.start + len(self.text), to_html(self.text))


class Arriving:
    def __init__(self) -> None:
        self._texts: dict[str, Growing] = {}

    def take(self, delta: Delta) -> Finished | None:
        """What the piece finishes. Where one is missing before it nothing more is drawn, until a
        snapshot has the whole."""
        if delta.kind != "text":
            return None
        held = self._texts.get(delta.block)
        if held is None:
            if delta.offset or len(self._texts) >= AT_ONCE:
                return None
            held = self._texts[delta.block] = Growing()
        known = held.length - delta.offset
        if known < 0:
            del self._texts[delta.block]
            return None
        if known >= len(delta.text):
            return None
        start = held.finished
        text = held.add(delta.text[known:])
        return Finished(delta.block, start, text) if text else None

    def end(self, block: str) -> None:
        self._texts.pop(block, None)

    def read(self, snapshot: Snapshot) -> list[Finished]:
        """What of a snapshot is finished; what follows joins on to it. Texts that it has not have ended."""
        found = []
        arriving = {block.block for block in snapshot.blocks}
        self._texts = {block: held for block, held in self._texts.items() if block in arriving}
        for block in snapshot.blocks:
            if block.kind != "text":
                continue
            held = self._texts.get(block.block)
            if held is None and len(self._texts) >= AT_ONCE:
                continue
            growing = Growing()
            text = growing.add(block.text)
            if held is None or held.length < growing.length:
                self._texts[block.block] = growing
            if text:
                found.append(Finished(block.block, 0, text))
        return found


def with_drawn(snapshot: Snapshot, finished: list[Finished]) -> Snapshot:
    """The same with what is finished of it drawn. To be called in a thread."""
    drawn = {one.block: one.drawn() for one in finished}
    return replace(snapshot, blocks=[_drawn(block, drawn) for block in snapshot.blocks])


def _drawn(block: OpenBlock, drawn: dict[str, Rendered]) -> OpenBlock:
    found = drawn.get(block.block)
    return replace(block, html=found.html, drawn=found.end) if found else block
