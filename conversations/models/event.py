"""Events: the rows of a conversation's log. Only `conversations.log` writes them."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from harness.events import Event as EventValue
from harness.events import load
from harness.history import Entry

from .conversation import Conversation
from .run import Run


class EventQuerySet(models.QuerySet["Event"]):
    def after(self, seq: int) -> Self:
        return self.filter(seq__gt=seq).order_by("seq")

    def about(self, subjects: set[str]) -> Self:
        """Everything that is drawn together with these subjects (`harness.events.subject_of`)."""
        return self.filter(subject__in=subjects).order_by("seq")

    def waiting_interrupts(self, conversation_id: int) -> Self:
        """Interrupts that no run has heeded yet."""
        return self.filter(
            conversation_id=conversation_id, type="user.interrupt", processed_at=None
        )


class Event(models.Model):
    conversation = models.ForeignKey(
        Conversation,
        on_delete=models.CASCADE,
        related_name="events",
        # The unique pair with `seq` finds the same, and each index is a page that every append writes.
        db_index=False,
    )
    seq = models.PositiveBigIntegerField()
    """Counts up from 1 in each conversation, without gaps; order of commit."""
    uid = models.CharField(max_length=40, unique=True)
    type = models.CharField(max_length=60)
    subject = models.CharField(max_length=40)
    payload = models.JSONField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """The person or program that caused it; empty for what the run itself did."""
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="+")
    key = models.CharField(max_length=100, null=True)
    """The sender's own idempotency key: the same key twice stores one event."""
    processed_at = models.DateTimeField(null=True)
    """Null while an input waits to be handled."""
    created_at = models.DateTimeField()

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["conversation", "seq"]
        verbose_name = _("event")
        verbose_name_plural = _("events")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="event_seq_unique"),
            models.UniqueConstraint(
                fields=["conversation", "key"],
                condition=models.Q(key__isnull=False),
                name="event_key_unique",
            ),
        ]
        indexes = [
            models.Index(fields=["conversation", "subject"], name="event_subject"),
            models.Index(fields=["conversation", "type", "seq"], name="event_type"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"

    @property
    def value(self) -> EventValue:
        return load(self.payload)

    def entry(self) -> Entry:
        return Entry(self.uid, self.value, self.seq, self.created_at.timestamp())
