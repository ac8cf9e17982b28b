"""Which conversations a conversation descends from: those whose agents began it, up to the people's own."""

from __future__ import annotations

from .models import Conversation

MOST_ANCESTORS = 20
"""How far up a child's parents are looked for; deeper nesting is nobody's."""


def ancestors(conversation: Conversation) -> list[int]:
    """The keys of those above, the nearest first."""
    found: list[int] = []
    parent = conversation.parent_id
    while parent is not None and len(found) < MOST_ANCESTORS:
        found.append(parent)
        parent = Conversation.objects.values_list("parent_id", flat=True).get(pk=parent)
    return found


def root_of(conversation: Conversation) -> int:
    """The key of the conversation that people began."""
    above = ancestors(conversation)
    return above[-1] if above else conversation.pk


def root_conversation(conversation: Conversation) -> Conversation:
    """The conversation that people began, loaded: the given one itself, or what it descends from."""
    while conversation.parent is not None:
        conversation = conversation.parent
    return conversation
