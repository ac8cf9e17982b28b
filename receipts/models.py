"""The keys with which this server signs receipts. Old ones stay, so that what they signed can be checked."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class SigningKey(models.Model):
    fingerprint = models.CharField(max_length=64, unique=True)
    """SHA-256 of the raw public key, in hexadecimal."""
    public_pem = models.TextField()
    sealed = models.TextField()
    """The private key (PKCS 8, PEM), sealed by the vault."""
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        verbose_name = _("key that signs receipts")
        verbose_name_plural = _("keys that sign receipts")

    def __str__(self) -> str:
        return self.fingerprint
