"""Mails about what waits for a person: what each was told of, and what she had seen by then.

`waiting` and `mailing` write them. A row stands for one thing that waits and one person, so that nobody
is mailed about the same thing twice.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from conversations.models import Conversation


class WaitNotice(models.Model):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="wait_notices"
    )
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="wait_notices"
    )
    subject = models.CharField(max_length=40)
    """Id of the call that asks."""
    batch = models.CharField(max_length=40, db_index=True)
    """What went into one mail."""
    tries = models.PositiveSmallIntegerField(default=1)
    mailed_at = models.DateTimeField(null=True)
    """Null: not yet, or refused by the mail server."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "subject"], name="wait_notice_once")]

    def __str__(self) -> str:
        return f"{self.subject} for {self.user_id}"


class Seen(models.Model):
    """When a person last opened a conversation that waited for somebody."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "conversation"], name="seen_once")]

    def __str__(self) -> str:
        return f"{self.conversation_id} by {self.user_id}"
