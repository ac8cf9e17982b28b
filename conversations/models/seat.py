"""Conversations that wait because their owner or organisation runs as many as it may at once.

`conversations.seats` gives seats away, oldest first; the row goes when the seat is taken.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation

from .conversation import Conversation


class SeatWait(models.Model):
    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="seat_wait"
    )
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        verbose_name = _("wait for a seat")
        verbose_name_plural = _("waits for seats")

    def __str__(self) -> str:
        return f"{self.conversation_id} since {self.created_at:%Y-%m-%d %H:%M:%S}"
