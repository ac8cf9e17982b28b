"""Why something was found, as agents are told, and that it is looked for by vectors as well."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.models import Conversation
from memory.embedding.asking import look_up
from memory.embedding.paying import Payer

BY_WORDS = (
    "Looked for by words alone: what compares meanings did not answer. Other words may find more."
)


def why_found(words: Sequence[str], likeness: float | None) -> str:
    has = f"has: {', '.join(words) or '–'}"
    return has if likeness is None or likeness <= 0 else f"{has}; alike as a whole: {likeness:.2f}"


def look_up_for(conversation: Conversation, text: str) -> None:
    """Before a search for it. In a tool's thread, which may wait a moment."""
    owner = conversation.owner_id
    look_up(Payer(conversation.organisation_id, owner), owner, text)
