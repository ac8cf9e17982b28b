"""Hooks: whom an organisation has asked about its agents' calls before they run.

What one may say is `harness.hooks`' (hold back, ask a person), how it is asked `asking`'s.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from harness.ids import new_id

VIEW_ANY = "hooks.view_hook"
CHANGE_ANY = "hooks.change_hook"


def new_hook_id() -> str:
    return new_id("hook")


class HookQuerySet(models.QuerySet["Hook"]):
    def visible_to(self, user: User) -> Self:
        """Those of organisations that she manages; all for staff with the permission."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW_ANY):
            return self
        roles = [role for role in Role if role.manages]
        return self.filter(
            organisation__memberships__user=user, organisation__memberships__role__in=roles
        )


class Hook(models.Model):
    class Kind(models.TextChoices):
        PYTHON = "python", _("code of this server")
        WEBHOOK = "webhook", _("signed request")

    class OnFailure(models.TextChoices):
        REFUSE = "refuse", _("the call is refused")
        PASS = "pass", _("the call passes")

    uid = models.CharField(max_length=40, unique=True, default=new_hook_id, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="hooks")
    name = models.CharField(_("name"), max_length=100)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    target = models.CharField(_("target"), max_length=500)
    """The name of an entry point, or an address."""
    sealed = models.TextField(blank=True, editable=False)
    """The secret with which its requests are signed."""
    tool = models.CharField(_("tools"), max_length=128, default="*")
    """A name or a glob."""
    position = models.PositiveSmallIntegerField(_("order"), default=10)
    deadline = models.FloatField(
        _("deadline in seconds"),
        default=5.0,
        validators=[MinValueValidator(0.1), MaxValueValidator(30)],
    )
    on_failure = models.CharField(
        _("when it fails"), max_length=10, choices=OnFailure, default=OnFailure.REFUSE
    )
    enabled = models.BooleanField(_("in use"), default=True)
    asked = models.PositiveBigIntegerField(default=0, editable=False)
    held_back = models.PositiveBigIntegerField(default=0, editable=False)
    """How often it refused or asked for a person."""
    failed = models.PositiveBigIntegerField(default=0, editable=False)
    milliseconds = models.PositiveBigIntegerField(default=0, editable=False)
    """What all of its answers took together."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = HookQuerySet.as_manager()

    class Meta:
        ordering = ["organisation", "position", "id"]
        verbose_name = _("hook")
        verbose_name_plural = _("hooks")
        constraints = [
            models.UniqueConstraint(fields=["organisation", "name"], name="hook_name_unique")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def average(self) -> int:
        """Milliseconds of one answer."""
        return round(self.milliseconds / self.asked) if self.asked else 0
