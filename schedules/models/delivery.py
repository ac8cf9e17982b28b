"""What became of a run's result on its way to people: a mail to each who is to get it, a file among the
owner's.

One row for each run, way and person, written where the run's end is settled, so that nothing is told twice.
What a mail or file says is put together when it goes out (`results`): no text stands here.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from conversations.models import StoredFile
from harness.ids import new_id

from .run import OrderRun

PAUSES = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=20), timedelta(hours=1))
"""After each try but the last, before the next one."""


def new_delivery_id() -> str:
    return new_id("dlvr")


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def visible_to(self, user: User) -> Self:
        """Those of the person's own schedules."""
        return self.filter(run__order__owner=user, run__order__organisation__memberships__user=user)

    def waiting(self) -> Self:
        return self.filter(state=Delivery.State.WAITING).order_by("pk")

    def due(self, now: datetime) -> Self:
        """Those that wait and were not tried just now."""
        rested = Q(tries=0)
        for tries, pause in enumerate(PAUSES, 1):
            rested |= Q(tries=tries, changed_at__lte=now - pause)
        return self.waiting().filter(rested)


class Delivery(models.Model):
    class Way(models.TextChoices):
        MAIL = "mail", _("by mail")
        FILE = "file", _("as a file")

    class State(models.TextChoices):
        WAITING = "waiting", _("about to be sent")
        SENDING = "sending", _("being sent")
        SENT = "sent", _("sent")
        FAILED = "failed", _("failed")
        LEFT_OUT = "left_out", _("left out")

    class Why(models.TextChoices):
        NO_MAIL = "no_mail", _("this site sends no mail")
        NO_ADDRESS = "no_address", _("the person has no address")
        RIGHTS = "rights", _("the person may not read this run")
        STOPPED = "stopped", _("the person wants no mails of this schedule")
        REFUSED = "refused", _("the mail server refused it")
        UNKNOWN = "unknown", _("the server ended while it was sent; it may have arrived")
        ROOM = "room", _("there is no room for more files")
        NOTHING = "nothing", _("nothing was answered")

    uid = models.CharField(max_length=40, unique=True, default=new_delivery_id, editable=False)
    run = models.ForeignKey(OrderRun, on_delete=models.CASCADE, related_name="deliveries")
    way = models.CharField(max_length=10, choices=Way)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    """Who gets it."""
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    why = models.CharField(max_length=10, choices=Why, blank=True)
    """With `FAILED` and `LEFT_OUT`."""
    tries = models.PositiveSmallIntegerField(default=0)
    file = models.ForeignKey(StoredFile, on_delete=models.SET_NULL, null=True, related_name="+")
    """Null: not made, or deleted since."""
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        verbose_name = _("result of a schedule")
        verbose_name_plural = _("results of schedules")
        constraints = [models.UniqueConstraint(fields=["run", "way", "user"], name="delivery_once")]
        indexes = [
            models.Index(
                fields=["id"],
                condition=models.Q(state__in=["waiting", "sending"]),
                name="delivery_open",
            )
        ]

    def __str__(self) -> str:
        return self.uid
