"""Notes as the log pins them, in the transaction of the event."""

from __future__ import annotations

from conversations.models import Conversation, Event
from harness.events import Event as EventValue

from .events import NotePinned
from .models import Note


def project(conversation: Conversation, row: Event, event: EventValue) -> None:
    if isinstance(event, NotePinned):
        Note.objects.create(conversation=conversation, seq=row.seq, text=event.text)
