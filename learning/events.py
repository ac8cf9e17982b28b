"""What the log tells of learning: numbers, never what was learned."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from harness.events import AppEvent

TYPE = "x.memory_learned"


class MemoryLearned(AppEvent):
    """The conversation was read once it rested, and something of it is remembered."""

    type: str = TYPE
    conversation_id: str
    count: int
    waiting: int = 0
    """How many of them wait for a person's yes."""

    def remark(self) -> str:
        words = ngettext(
            "Learned %(count)d thing from this conversation.",
            "Learned %(count)d things from this conversation.",
            self.count,
        ) % {"count": self.count}
        waits = _("What was learned waits for a yes.")
        return f"{words} {waits}" if self.waiting else words

    def more(self) -> str:
        return reverse("learning:learned", args=[self.conversation_id])
