"""What waits in the queue of an order that works one: put there by people, by programs and by the runs
themselves. Each is one run's work at a time; what becomes of it is `queueing`'s.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from harness.ids import new_id

from .order import StandingOrder
from .run import OrderRun


def new_item_id() -> str:
    return new_id("item")


class QueueItemQuerySet(models.QuerySet["QueueItem"]):
    def visible_to(self, user: User) -> Self:
        """Those of the person's own orders."""
        return self.filter(order__owner=user, order__organisation__memberships__user=user)

    def waiting(self) -> Self:
        return self.filter(state=QueueItem.State.WAITING)

    def ready(self, now: datetime) -> Self:
        """Those that may be begun, what people asked for before what agents follow up, then by age."""
        return self.waiting().filter(not_before__lte=now).order_by("depth", "pk")


class QueueItem(models.Model):
    class Source(models.TextChoices):
        PERSON = "person", _("a person")
        PROGRAM = "program", _("a program")
        AGENT = "agent", _("a run of its own")

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        TAKEN = "taken", _("at work")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        DROPPED = "dropped", _("taken out")

    uid = models.CharField(max_length=40, unique=True, default=new_item_id, editable=False)
    order = models.ForeignKey(StandingOrder, on_delete=models.CASCADE, related_name="items")
    text = models.TextField()
    source = models.CharField(max_length=10, choices=Source)
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Null: an agent did."""
    key = models.CharField(max_length=100, blank=True)
    """A program's own id of it: the same one adds nothing again."""
    depth = models.PositiveSmallIntegerField(default=0)
    """How many items, each the follow-up of the last, led here."""
    follows = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, related_name="follow_ups"
    )
    untrusted_by = models.CharField(max_length=300, blank=True)
    """What had brought strangers' words into the run that asked for it."""
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    not_before = models.DateTimeField()
    run = models.ForeignKey(OrderRun, on_delete=models.SET_NULL, null=True, related_name="items")
    """The last that had it."""
    error = models.CharField(max_length=60, blank=True)
    words = models.CharField(max_length=500, blank=True)
    """How the answer begins, or why it failed."""
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    objects = QueueItemQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("item of a work queue")
        verbose_name_plural = _("items of work queues")
        constraints = [
            models.UniqueConstraint(
                fields=["order", "key"], condition=~Q(key=""), name="queue_item_once_a_key"
            )
        ]
        indexes = [
            models.Index(
                fields=["not_before"], condition=Q(state="waiting"), name="queue_item_waiting"
            ),
            models.Index(F("order"), F("id").desc(), name="queue_item_list"),
        ]

    def __str__(self) -> str:
        return self.uid
