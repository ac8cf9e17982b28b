"""Requests of programs that carried an Idempotency-Key, and what they were answered.

Rows are kept for a day (`conversations.request_keys`): longer than any client retries.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation


class RequestKey(models.Model):
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    """SHA-256 of method, path and body in hexadecimal: the same key names the same request."""
    status = models.PositiveSmallIntegerField(default=0)
    """0 while the first request is under way, in a transaction that nobody else sees."""
    answer = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "user", "key"], name="request_key_unique"
            )
        ]
        indexes = [models.Index(fields=["created_at"], name="request_key_time")]

    def __str__(self) -> str:
        return self.key
