"""A person's conversations among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator

from accounts.models import User
from conversations.models import Conversation
from owndata.parts import File

from .export import as_json


def files(user: User) -> Iterator[File]:
    """One file for each that is hers, those of her subagents and put away ones among them."""
    mine = Conversation.objects.owned_by(user).order_by("pk")
    for key in mine.values_list("pk", flat=True):
        # One at a time, as it is when its turn comes; it may be gone by then.
        rows = mine.select_related(
            "agent_version__agent", "environment", "organisation", "owner", "parent"
        )
        conversation = rows.filter(pk=key).first()
        if conversation is not None:
            yield File(f"conversations/{conversation.uid}.json", as_json(conversation))
