"""Takes out of subagents how they ended, where it repeats words that were taken out of their log."""

from __future__ import annotations

from conversations.forgetting import Removed
from harness.events import SessionStatusIdle
from harness.redacted import REMOVED

from .models import Subagent
from .projection import detail_of


def forget(removed: Removed) -> None:
    for event in removed.of(SessionStatusIdle).values():
        if detail := detail_of(event):
            found = Subagent.objects.filter(child=removed.conversation, detail=detail)
            found.update(detail=REMOVED)
