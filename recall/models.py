"""What conversations have of memory: what was recalled for each message, and who wants none of it.

Memories themselves are `memory`'s. A row names what it told by ids, so that what is forgotten is forgotten
here as well.
"""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from conversations.models import Conversation
from harness.ids import new_id


def new_recall_id() -> str:
    return new_id("rcl")


class RecallQuerySet(models.QuerySet["Recall"]):
    def visible_to(self, user: User) -> Self:
        """Of conversations that are hers: what she is reminded of is nobody else's."""
        return self.filter(conversation__in=Conversation.objects.owned_by(user))


class Recall(models.Model):
    """What an agent was reminded of by one message."""

    uid = models.CharField(max_length=40, unique=True, default=new_recall_id, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    message_uid = models.CharField(max_length=40)
    hits: Any = models.JSONField(default=list)
    """Best first: ids of memory, version and store, the score, and the words that it was found by."""
    confidence = models.FloatField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = RecallQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("recall")
        verbose_name_plural = _("recalls")
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "message_uid"], name="recall_once_a_message"
            )
        ]

    def __str__(self) -> str:
        return self.uid


class MemoryOff(models.Model):
    """That a person wants no agent to remember or recall anything of her, in one organisation."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("memory switched off")
        verbose_name_plural = _("memory switched off")
        constraints = [
            models.UniqueConstraint(fields=["user", "organisation"], name="memory_off_once")
        ]

    def __str__(self) -> str:
        return f"{self.user_id}:{self.organisation_id}"
