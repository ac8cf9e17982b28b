"""Mails that came for an order, with what became of each: a run, or why none.

That a mail is taken once, by whichever way and however often it comes, is a constraint here.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from accounts.models import User

from .order import StandingOrder
from .run import OrderRun


class ArrivalQuerySet(models.QuerySet["Arrival"]):
    def visible_to(self, user: User) -> Self:
        """Those of the person's own orders."""
        return self.filter(order__owner=user, order__organisation__memberships__user=user)


class Arrival(models.Model):
    class Refusal(models.TextChoices):
        SENDER = "sender", _("its sender is not among those who may")
        FORGED = "forged", _("the mail server could not confirm its sender")
        AUTOMATIC = "automatic", _("a program sent it by itself")
        OURS = "ours", _("this site sent it")
        PAUSED = "paused", _("the schedule was paused")
        TOO_MANY = "too_many", _("too many came within an hour")
        ROOM = "room", _("there was no room for its files")

    order = models.ForeignKey(StandingOrder, on_delete=models.CASCADE, related_name="arrivals")
    key = models.CharField(max_length=64)
    """A digest of the mail's own id, or of all of it where it has none."""
    sender = models.CharField(max_length=254)
    subject = models.CharField(max_length=200, blank=True)
    refusal = models.CharField(max_length=10, choices=Refusal, blank=True)
    run = models.ForeignKey(OrderRun, on_delete=models.SET_NULL, null=True, related_name="arrivals")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ArrivalQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("mail to a schedule")
        verbose_name_plural = _("mails to schedules")
        constraints = [
            models.UniqueConstraint(fields=["order", "key"], name="arrival_once"),
        ]
        indexes = [models.Index(F("order"), F("id").desc(), name="arrival_list")]

    def __str__(self) -> str:
        return f"{self.key[:12]} for {self.order_id}"
