"""After what a conversation is called, asked of its log."""

from __future__ import annotations

from dataclasses import dataclass

from harness.events import SessionUpdated

from .models import Conversation, Event


@dataclass(frozen=True, slots=True)
class AutomaticTitle:
    uid: str
    """Of the event that gave it."""
    made_of: str
    """What it was called after."""


def automatic_title(conversation: Conversation) -> AutomaticTitle | None:
    """That which it has now; None where it has none, or one that somebody gave."""
    updates = Event.objects.filter(conversation=conversation, type="session.updated")
    for row in updates.order_by("-seq"):
        value = row.value
        if isinstance(value, SessionUpdated) and value.title is not None:
            made = value.title and value.made_of
            return AutomaticTitle(row.uid, value.made_of) if made else None
    return None
