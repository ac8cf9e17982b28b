"""Hooks: whom an organisation has asked about what its agents do, or told of it, and what came of that.

What one may say where is `points`', how it is asked `asking`'s, how it is told afterwards `telling`'s.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from conversations.models import Conversation
from harness.ids import new_id

from .points import DEFAULT, POINTS

VIEW_ANY = "hooks.view_hook"


def new_hook_id() -> str:
    return new_id("hook")


def new_delivery_id() -> str:
    return new_id("whe")


def default_points() -> list[str]:
    return [*DEFAULT]


class HookQuerySet(models.QuerySet["Hook"]):
    def visible_to(self, user: User) -> Self:
        """Those of organisations that she manages; all, to look at, for staff with the permission."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW_ANY):
            return self
        roles = [role for role in Role if role.manages]
        return self.filter(
            organisation__memberships__user=user, organisation__memberships__role__in=roles
        )

    def with_counts(self) -> Self:
        return self.prefetch_related("counts")


class Hook(models.Model):
    class Kind(models.TextChoices):
        PYTHON = "python", _("code of this server")
        WEBHOOK = "webhook", _("signed request")
        COMMAND = "command", _("command in the sandbox")

    class OnFailure(models.TextChoices):
        REFUSE = "refuse", _("it counts as a refusal")
        PASS = "pass", _("it is passed over")

    uid = models.CharField(max_length=40, unique=True, default=new_hook_id, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="hooks")
    name = models.CharField(_("name"), max_length=100)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    target = models.CharField(_("target"), max_length=500)
    """The name of an entry point, an address, or a command line."""
    sealed = models.TextField(blank=True, editable=False)
    """The secret with which its requests are signed."""
    points = models.JSONField(_("points"), default=default_points)
    """Names of `points.POINTS`."""
    tool = models.CharField(_("tools"), max_length=128, default="*")
    """A name or a glob, where it is about calls."""
    trusted = models.BooleanField(_("its words count as ours"), default=False)
    """Of a signed request; code of this server is trusted, a command never."""
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
    told_from = models.DateTimeField(default=timezone.now, editable=False)
    """What happened before is not told to it."""
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
    def counted(self) -> list[HookCount]:
        """Of the points at which it is asked now, in their order."""
        by_point = {each.point: each for each in self.counts.all()}
        return [by_point[point] for point in self.points if point in by_point]

    @property
    def is_about_calls(self) -> bool:
        """Patterns of tools choose what it is asked about, at one point at least."""
        return any(POINTS[point].on_calls for point in self.points if point in POINTS)

    @property
    def vouched_for(self) -> bool:
        """Words that it adds for an agent are not taken for others'."""
        return self.kind == self.Kind.PYTHON or (self.kind == self.Kind.WEBHOOK and self.trusted)


class HookCount(models.Model):
    """What came of a hook at one point so far."""

    hook = models.ForeignKey(Hook, on_delete=models.CASCADE, related_name="counts")
    point = models.CharField(max_length=20)
    asked = models.PositiveBigIntegerField(default=0)
    held_back = models.PositiveBigIntegerField(default=0)
    """How often it refused or asked for a person."""
    failed = models.PositiveBigIntegerField(default=0)
    milliseconds = models.PositiveBigIntegerField(default=0)
    """What all of its answers took together."""
    last_milliseconds = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["hook", "id"]
        constraints = [models.UniqueConstraint(fields=["hook", "point"], name="hook_count_unique")]

    def __str__(self) -> str:
        return self.point

    @property
    def average(self) -> int:
        """Milliseconds of one answer."""
        return round(self.milliseconds / self.asked) if self.asked else 0


class ToldUpTo(models.Model):
    """How far in a conversation's log hooks were told of what had happened."""

    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="hooks_told"
    )
    seq = models.PositiveBigIntegerField(default=0)
    owes = models.BooleanField(default=True)
    """A run began, and nobody has found since that all was told."""

    class Meta:
        indexes = [models.Index(fields=["id"], condition=models.Q(owes=True), name="hooks_owed")]

    def __str__(self) -> str:
        return str(self.seq)


class HookDelivery(models.Model):
    """Something that happened and is still to be told to a hook; none once it was, or was given up."""

    hook = models.ForeignKey(Hook, on_delete=models.CASCADE, related_name="deliveries")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    uid = models.CharField(max_length=40, unique=True, default=new_delivery_id)
    """The same at every try."""
    point = models.CharField(max_length=20)
    subject = models.CharField(max_length=40)
    facts = models.JSONField(default=dict)
    """Ids and numbers, nothing that was said."""
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["due_at"], name="hook_delivery_due")]

    def __str__(self) -> str:
        return self.uid
