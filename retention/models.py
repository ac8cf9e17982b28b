"""How long an organisation keeps conversations that nobody touches: one rule, first a dry run.

Which conversations it means is `expiring`'s part.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User

GRACE = timedelta(days=1)
"""From when a rule is put in force until it deletes anything."""


class RetentionRuleQuerySet(models.QuerySet["RetentionRule"]):
    def visible_to(self, user: User) -> Self:
        """Those of organisations that she belongs to."""
        return self.filter(organisation__memberships__user=user)

    def effective(self) -> Self:
        """That delete by now."""
        return self.filter(in_force_at__lte=timezone.now() - GRACE)


class RetentionRule(models.Model):
    organisation = models.OneToOneField(
        Organisation, on_delete=models.CASCADE, related_name="retention_rule"
    )
    days = models.PositiveIntegerField(_("days"))
    """For which nobody has touched a conversation that goes."""
    only_archived = models.BooleanField(_("only archived ones"), default=False)
    version = models.PositiveIntegerField(default=1)
    """Counts what was saved: whoever puts it in force says which one she looked at."""
    in_force_at = models.DateTimeField(null=True)
    """Null: a dry run."""
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    saved_at = models.DateTimeField(auto_now=True)

    objects = RetentionRuleQuerySet.as_manager()

    class Meta:
        verbose_name = _("retention rule")
        verbose_name_plural = _("retention rules")

    def __str__(self) -> str:
        return f"{self.organisation_id}: {self.days}"

    @property
    def begins_at(self) -> datetime | None:
        """When it deletes for the first time; None: never, as it is a dry run."""
        return self.in_force_at + GRACE if self.in_force_at else None

    @property
    def warning(self) -> timedelta:
        """So long before it goes a conversation says so."""
        return min(timedelta(days=7), timedelta(days=self.days) / 2)
