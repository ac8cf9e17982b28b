"""What is left to delete outside of the tables, once a conversation's rows are gone, or an upload's, or what
was said of a file in a workspace.

Written in the transaction that deletes it, so that a process which dies right after leaves no files
behind for ever, and before an upload begins. `conversations.removals` clears the rows.
"""

from __future__ import annotations

from django.db import models


class Removal(models.Model):
    uid = models.CharField(max_length=40)
    """Of the conversation or upload that was deleted, or in whose workspace something is to go."""
    path = models.TextField(blank=True, default="")
    """Of one file in that workspace; empty: all of it."""
    inode = models.BigIntegerField(default=0)
    """That file's number: another one of its name stays. 0: whichever has it."""
    not_before = models.DateTimeField(null=True)
    """Of what is under way, which until then may still get its row. Null: to go now."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["uid", "path"], name="conversations_removal_once")
        ]

    def __str__(self) -> str:
        return f"{self.uid}/{self.path}" if self.path else self.uid
