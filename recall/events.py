"""What the log tells of memory: ids and numbers, never what is remembered."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import ngettext

from harness.events import AppEvent

TYPE = "x.memory_recalled"


class MemoryRecalled(AppEvent):
    """An agent was reminded of something by a message; which memories and passages, and why, says a row."""

    type: str = TYPE
    recall_id: str
    message_id: str
    conversation_id: str
    count: int
    passages: int = 0
    turns: int = 0

    def remark(self) -> str:
        memories = ngettext(
            "Recalled %(count)d memory.", "Recalled %(count)d memories.", self.count
        ) % {"count": self.count}
        passages = ngettext(
            "Found %(count)d passage of documents.",
            "Found %(count)d passages of documents.",
            self.passages,
        ) % {"count": self.passages}
        turns = ngettext(
            "Found %(count)d turn that the summary stands for.",
            "Found %(count)d turns that the summary stands for.",
            self.turns,
        ) % {"count": self.turns}
        told = ((memories, self.count), (passages, self.passages), (turns, self.turns))
        return " ".join(words for words, any_ in told if any_)

    def more(self) -> str:
        return f"{reverse('recall:recalled', args=[self.conversation_id])}#{self.recall_id}"
