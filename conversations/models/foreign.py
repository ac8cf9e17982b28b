"""Marks on a workspace: what of it may hold words of strangers.

A mark is of a file, or of a command after which anything it changed may be theirs. What marks mean is
`tools_app.provenance`'s part, who makes them `conversations.provenance`'s.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .conversation import Conversation


class ForeignMark(models.Model):
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="foreign_marks"
    )
    path = models.TextField(blank=True)
    """Of a file, relative to the workspace; empty: the mark is of a command."""
    inode = models.BigIntegerField(default=0)
    """The file's number, by which it is known under another name; 0: not known."""
    source = models.CharField(max_length=300, blank=True)
    """Where it comes from, in words; empty: of a command that runs, or left programs running, while
    nothing within its reach is foreign yet."""
    call_uid = models.CharField(max_length=40, blank=True)
    """The call that ran the command; empty: of whatever commands left running."""
    since = models.DateTimeField(null=True)
    """When the command began."""
    settled = models.BooleanField(default=True)
    """False: the command may turn out to have brought nothing."""

    class Meta:
        ordering = ["id"]
        verbose_name = _("mark of foreign content")
        verbose_name_plural = _("marks of foreign content")

    def __str__(self) -> str:
        return f"{self.conversation_id} {self.pk}"
