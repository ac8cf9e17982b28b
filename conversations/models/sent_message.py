"""That a message was sent in somebody's place: what the rate of messages counts.

It is no part of a conversation and outlives it. `conversations.ratelimits` stores and forgets rows.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class SentMessage(models.Model):
    place = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    """`accounts.persons.whose_place` of the sender."""
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("sent message")
        verbose_name_plural = _("sent messages")
        indexes = [models.Index(fields=["place", "created_at"], name="sent_message_rate")]

    def __str__(self) -> str:
        return f"{self.place_id} at {self.created_at:%Y-%m-%d %H:%M:%S}"
