"""Webhooks: the endpoints of an organisation, their secrets, and what is delivered to them.

A delivery is written in the transaction of the change that it tells of (`webhooks.outbox`) and sent
afterwards (`webhooks.courier`); who may change endpoints is `actions.webhooks`' question.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from harness.ids import new_id

from .types import EVERYTHING

CHANGE = "webhooks.change_webhookendpoint"


def new_endpoint_id() -> str:
    return new_id("whep")


def new_webhook_event_id() -> str:
    return new_id("whe")


class WebhookEndpointQuerySet(models.QuerySet["WebhookEndpoint"]):
    def visible_to(self, user: User) -> Self:
        """Those of organisations the person manages."""
        if not user.is_active:
            return self.none()
        managing = [role for role in Role if role.manages]
        return self.filter(
            organisation__memberships__user=user, organisation__memberships__role__in=managing
        )

    def manageable_by(self, user: User) -> Self:
        """Those that she switches and sends again: all for staff with the permission; else what she sees."""
        return self if has_staff_permission(user, CHANGE) else self.visible_to(user)

    def listening(self) -> Self:
        return self.filter(disabled_at=None)


class WebhookEndpoint(models.Model):
    class Reason(models.TextChoices):
        PERSON = "person", _("switched off by somebody")
        FAILING = "failing", _("it failed for too long")
        GONE = "gone", _("it answered that it is gone (410)")
        ADDRESS = (
            "address",
            _(
                "its name leads to a private address, which is refused: the operator can list it in"
                " AGENTSITE_WEBHOOK_PRIVATE_HOSTS"
            ),
        )

    uid = models.CharField(max_length=40, unique=True, default=new_endpoint_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="webhook_endpoints"
    )
    url = models.CharField(_("address"), max_length=500)
    description = models.CharField(_("description"), max_length=200, blank=True)
    event_types = models.JSONField(_("event types"), default=list)
    """Names of `webhooks.types`, or `*` alone for all."""
    disabled_at = models.DateTimeField(_("switched off at"), null=True)
    disabled_reason = models.CharField(
        _("switched off because"), max_length=10, choices=Reason, blank=True
    )
    failing_since = models.DateTimeField(_("failing since"), null=True)
    """When the first attempt failed after which none succeeded."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = WebhookEndpointQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("webhook endpoint")
        verbose_name_plural = _("webhook endpoints")
        indexes = [
            models.Index(
                fields=["organisation"],
                condition=Q(disabled_at__isnull=True),
                name="webhook_listening",
            )
        ]

    def __str__(self) -> str:
        return self.url

    @property
    def is_enabled(self) -> bool:
        return self.disabled_at is None

    def wants(self, event_type: str) -> bool:
        return EVERYTHING in self.event_types or event_type in self.event_types


class WebhookSecretQuerySet(models.QuerySet["WebhookSecret"]):
    def valid_at(self, moment: datetime) -> Self:
        """Newest first."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=moment)).order_by("-id")


class WebhookSecret(models.Model):
    """One signing secret. Only the newest has no end; older ones sign beside it until theirs."""

    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="secrets")
    sealed = models.TextField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)

    objects = WebhookSecretQuerySet.as_manager()

    def __str__(self) -> str:
        return f"secret {self.pk} of {self.endpoint_id}"


class WebhookDeliveryQuerySet(models.QuerySet["WebhookDelivery"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(endpoint__in=WebhookEndpoint.objects.visible_to(user))

    def unsettled(self) -> Self:
        return self.filter(state__in=UNSETTLED)

    def due_at(self, moment: datetime) -> Self:
        """To be sent now, to endpoints that are not switched off."""
        return self.unsettled().filter(next_attempt_at__lte=moment, endpoint__disabled_at=None)


class WebhookDelivery(models.Model):
    """One event for one endpoint: the same id and the same bytes at every attempt."""

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        DELIVERED = "delivered", _("delivered")
        FAILED = "failed", _("failed, tried again")
        DEAD = "dead", _("given up")

    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries"
    )
    event_id = models.CharField(_("event"), max_length=40, default=new_webhook_event_id)
    event_type = models.CharField(_("type"), max_length=60)
    subject = models.CharField(_("about"), max_length=40)
    """Public id of what the event is about."""
    body = models.TextField()
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.PENDING)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    """Since it was written, or since somebody last had it sent again."""
    next_attempt_at = models.DateTimeField()
    """For unsettled ones. While one is being sent: when it counts as lost with its process."""
    last_result = models.CharField(_("last result"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("created at"))
    settled_at = models.DateTimeField(_("settled at"), null=True)

    objects = WebhookDeliveryQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "event_id"], name="webhook_event_once")
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(state__in=["pending", "failed"]),
                name="webhook_due",
            ),
            models.Index(fields=["endpoint", "state", "-id"], name="webhook_by_state"),
            models.Index(fields=["created_at"], name="webhook_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"

    @property
    def is_settled(self) -> bool:
        return self.state not in UNSETTLED


class WebhookAttempt(models.Model):
    """One request and what came of it. `status` is empty when nothing was answered."""

    delivery = models.ForeignKey(
        WebhookDelivery, on_delete=models.CASCADE, related_name="attempt_log"
    )
    started_at = models.DateTimeField()
    milliseconds = models.PositiveIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=200, blank=True)
    excerpt = models.TextField(blank=True)
    """The beginning of what was answered."""

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.status or self.error}"


UNSETTLED = (WebhookDelivery.State.PENDING, WebhookDelivery.State.FAILED)
