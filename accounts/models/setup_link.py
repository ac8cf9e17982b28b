"""The one-time link through which the first administrator is made."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class SetupLinkQuerySet(models.QuerySet["SetupLink"]):
    def open_at(self, now: datetime) -> SetupLinkQuerySet:
        return self.filter(used_at=None, expires_at__gt=now)


class SetupLink(models.Model):
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    """SHA-256 of the token in hexadecimal; the token itself is printed once and never stored."""
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires at"))
    used_at = models.DateTimeField(_("used at"), null=True)

    objects: ClassVar[models.Manager[SetupLink]] = SetupLinkQuerySet.as_manager()

    class Meta:
        verbose_name = _("set-up link")
        verbose_name_plural = _("set-up links")

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M}"
