"""Who has written in conversations: for rules, questions and money that go by whose words an agent acts on.

Who may write is `models.share`'s part, and whose words the present turn answers `Conversation.asker_id`.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from .ancestry import TreeOf
from .models import Event

SAID = ("user.message", "user.define_outcome", "user.custom_tool_result")
"""Types of events by which somebody says what the agent is to act on."""


def writers_in(conversations: TreeOf | QuerySet[Any, Any]) -> set[int]:
    """The keys of all who said something there."""
    said = Event.objects.filter(conversation__in=conversations, type__in=SAID)
    return set(said.exclude(actor=None).order_by().values_list("actor", flat=True).distinct())
