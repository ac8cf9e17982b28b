"""Takes out of dead letters what a service said of words that were taken out."""

from __future__ import annotations

from conversations.forgetting import Removed
from harness.events import SessionError
from harness.redacted import REMOVED

from .models import DeadLetter


def forget(removed: Removed) -> None:
    errors = removed.of(SessionError)
    for entry in removed.entries:
        if entry.uid in errors:
            DeadLetter.objects.filter(
                conversation=removed.conversation, error_seq=entry.seq
            ).update(message=REMOVED)
