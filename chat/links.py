"""The address at which a conversation opens with one of its events in view."""

from __future__ import annotations

from conversations.models import Conversation


def address_of(conversation: Conversation, subject: str) -> str:
    """`subject` is what the page knows the event by."""
    return f"{conversation.get_absolute_url()}?at={subject}#u-{subject}"
