"""What happens at the board."""

from __future__ import annotations

from harness.events import AppEvent


class NotePinned(AppEvent):
    type: str = "x.note_pinned"
    text: str

    def remark(self) -> str:
        return f"Pinned: {self.text}"
