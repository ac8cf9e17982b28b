"""Whether anything in a conversation was written by strangers: then what is learned there waits for a yes."""

from __future__ import annotations

from conversations.models import Conversation, Event


def has_strangers_words(conversation: Conversation) -> bool:
    """However long ago: a later word of a person does not make it hers."""
    results = Event.objects.filter(conversation=conversation, type__endswith="tool_result")
    return results.filter(payload__untrusted=True).exists()
