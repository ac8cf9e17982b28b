"""What search finds: the plain text of a conversation's title and messages, one row each.

Kept by `conversations.search`. Beside the table stands the database's own full-text index, made and
kept in step by migration 0002 (FTS5 with triggers, or GIN); a later migration that rebuilds this
table on SQLite must make the triggers again.
"""

from __future__ import annotations

from django.db import models

from .conversation import Conversation


class SearchEntry(models.Model):
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="search_entries"
    )
    seq = models.PositiveBigIntegerField()
    """The event's number; 0 for the title."""
    text = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="search_entry_seq_unique")
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}:{self.seq}"
