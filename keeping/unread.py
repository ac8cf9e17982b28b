"""Which conversations have news that a person has not seen. She marks them as seen by `actions.seen`."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q

from conversations.models import Conversation
from conversations.models.conversation import ConversationQuerySet

from .models import SeenMark


def with_unread(queryset: ConversationQuerySet, user: Any) -> ConversationQuerySet:
    """Its rows with what `is_unread` reads; in the same query, however many there are."""
    seen = SeenMark.objects.filter(
        user=user, conversation=OuterRef("pk"), seq__gte=OuterRef("news_seq")
    )
    return queryset.annotate(unread=Q(news_seq__gt=0) & ~Exists(seen))


def is_unread(conversation: Conversation) -> bool:
    """Of a row of `with_unread`; False for any other."""
    return bool(vars(conversation).get("unread", False))
