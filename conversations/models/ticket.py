"""Tickets: what opens one socket once, for clients that can put a secret nowhere but in an address.

Addresses end up in logs and histories; what stands there is worthless a moment later, and after its
first use. `actions.tickets` makes and takes them.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from .conversation import Conversation


class SocketTicket(models.Model):
    digest = models.CharField(max_length=64, unique=True)
    """SHA-256 of the ticket, in hexadecimal; the ticket itself is not kept."""
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    token_uid = models.CharField(max_length=40, blank=True)
    """The API token that asked for it: the socket may do what that one may, as long as it is valid.
    Empty: a browser's session asked."""
    session_key = models.CharField(max_length=40, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"ticket {self.pk}"
