"""What the log tells of memory: ids and numbers, never what is remembered."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import ngettext

from harness.events import AppEvent

TYPE = "x.memory_recalled"


class MemoryRecalled(AppEvent):
    """An agent was reminded of something by a message; which memories, and why, stands in a row."""

    type: str = TYPE
    recall_id: str
    message_id: str
    conversation_id: str
    count: int

    def remark(self) -> str:
        return ngettext(
            "Recalled %(count)d memory.", "Recalled %(count)d memories.", self.count
        ) % {"count": self.count}

    def more(self) -> str:
        return f"{reverse('recall:recalled', args=[self.conversation_id])}#{self.recall_id}"
