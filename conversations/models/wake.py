"""Delayed wakes: when a conversation is to be looked at again, and why.

An agent's own wake comes due as an event (`x.wake_due`) and begins a turn; a retry only lets the run
go on. `conversations.log` writes the rows with the events that ask for them; `delays` takes them.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from accounts.models import User

from .conversation import Conversation


class WakeQuerySet(models.QuerySet["Wake"]):
    def visible_to(self, user: User) -> Self:
        """Those of conversations that she may read."""
        return self.filter(conversation__in=Conversation.objects.visible_to(user))

    def waiting(self) -> Self:
        return self.filter(state=Wake.State.WAITING)

    def due(self) -> Self:
        """Waiting ones whose time has come, by the database's clock."""
        return self.waiting().filter(due_at__lte=Now())


class Wake(models.Model):
    class Kind(models.TextChoices):
        AGENT = "agent", _("asked for by the agent")
        RETRY = "retry", _("a failed request is tried again")

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        DONE = "done", _("done")
        CANCELLED = "cancelled", _("cancelled")

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="wakes")
    kind = models.CharField(max_length=10, choices=Kind)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    due_at = models.DateTimeField()
    reason = models.CharField(max_length=500, blank=True)
    note = models.TextField(blank=True)
    priority = models.CharField(max_length=10, default="normal")
    dedupe_key = models.CharField(max_length=100, blank=True)
    event_uid = models.CharField(max_length=40)
    """The event that asked for it."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WakeQuerySet.as_manager()

    class Meta:
        ordering = ["due_at"]
        verbose_name = _("delayed wake")
        verbose_name_plural = _("delayed wakes")
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "dedupe_key"],
                condition=Q(state="waiting") & ~Q(dedupe_key=""),
                name="wake_dedupe",
            )
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state="waiting"), name="wake_due"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.due_at:%Y-%m-%d %H:%M:%S}"
