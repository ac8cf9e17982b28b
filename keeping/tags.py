"""The tags that a person sees: of these conversations, and all of hers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Max
from django.utils.http import urlencode

from accounts.models import Organisation, User
from conversations.models import Conversation

from .models import Tag

SHOWN = 40
"""Tags beside the list; all others are found by their filter."""


@dataclass(frozen=True, slots=True)
class Shown:
    word: str
    count: int = 0

    @property
    def filter(self) -> str:
        """As it is written into the search box."""
        return f'tag:"{self.word}"' if " " in self.word else f"tag:{self.word}"

    @property
    def query(self) -> str:
        return urlencode({"q": self.filter})


def tags_of(user: User, conversations: Collection[Conversation]) -> dict[int, list[Shown]]:
    """Hers, by the primary key of the conversation. One query."""
    found: dict[int, list[Shown]] = {}
    if conversations:
        for tag in Tag.objects.filter(user=user, conversation__in=conversations):
            found.setdefault(tag.conversation_id, []).append(Shown(tag.word))
    return found


def tags_in(user: User, organisation: Organisation) -> list[Shown]:
    """The tags of what her list there shows, those given most first."""
    listed = Conversation.objects.visible_to(user).listed_in(organisation)
    rows = (
        Tag.objects.filter(user=user, conversation__in=listed)
        .order_by()
        .values("folded")
        .annotate(word=Max("word"), count=Count("pk"))
        .order_by("-count", "folded")[:SHOWN]
    )
    return [Shown(row["word"], row["count"]) for row in rows]
