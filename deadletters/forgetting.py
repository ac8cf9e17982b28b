"""Takes out of dead letters what a service said of words that were taken out."""

from __future__ import annotations

from django.db.models import Q

from conversations.forgetting import Removed
from harness.events import SessionError, SessionStatusIdle
from harness.redacted import REMOVED

from .models import DeadLetter


def forget(removed: Removed) -> None:
    """By the place of the error, and by its words, which the rest repeats."""
    errors = removed.of(SessionError, SessionStatusIdle)
    places = [entry.seq for entry in removed.entries if entry.uid in errors]
    words = {_words(event) for event in errors.values()} - {""}
    DeadLetter.objects.filter(
        Q(error_seq__in=places) | Q(message__in=words), conversation=removed.conversation
    ).update(message=REMOVED, hint="")


def _words(event: SessionError | SessionStatusIdle) -> str:
    if isinstance(event, SessionError):
        return event.error.message
    return event.stop_details.message if event.stop_details is not None else ""
