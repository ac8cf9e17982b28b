"""Up to where conversations were read for what is to be remembered, what came of it, and who wants none.

One row for each conversation is the claim to read a stretch of its log at most once. It holds no word of the
conversation; what was learned stands in `memory`, what a call used is a `spending.models.Usage`.
"""

from __future__ import annotations

from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from conversations.models import Conversation
from spending.beside import CallBeside


class Analysis(CallBeside):
    PURPOSE: ClassVar[str] = "learning"

    class Outcome(models.TextChoices):
        ASKED = "asked", _("asked")
        LEARNED = "learned", _("learned something")
        NOTHING = "nothing", _("nothing to learn")
        UNREADABLE = "unreadable", _("the answer could not be read")
        DROPPED = "dropped", _("not wanted any more")
        FAILED = "failed", _("failed")
        NO_ROOM = "no_room", _("no budget left")
        LOST = "lost", _("lost with its process")
        SHORT = "short", _("too little yet")

    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="analysis"
    )
    since_seq = models.PositiveBigIntegerField(default=0)
    """Behind this event the stretch begins that was asked about last."""
    read_seq = models.PositiveBigIntegerField(default=0)
    """Up to this event it was read. Set when it is asked: a call that is lost is not made again."""
    claimed_seq = models.PositiveBigIntegerField(default=0)
    """The log's last event when that was asked."""
    looked_seq = models.PositiveBigIntegerField(default=0)
    """Up to this event it was looked whether there is enough that is new; not before `read_seq` counts."""
    looked_size = models.PositiveIntegerField(default=0)
    """Characters from `read_seq` up to there."""
    looked_person = models.BooleanField(default=False)
    """Some of them are a person's."""
    outcome = models.CharField(max_length=20, choices=Outcome, default=Outcome.ASKED)
    """Of what was asked last."""
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("reading of a conversation")
        verbose_name_plural = _("readings of conversations")
        indexes = [
            models.Index(fields=["at"], condition=models.Q(outcome="asked"), name="analysis_asked"),
            models.Index(
                fields=["provider", "model", "at"],
                condition=models.Q(outcome="failed"),
                name="analysis_failed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}: {self.outcome}"


class LearnedQuerySet(models.QuerySet["Learned"]):
    def visible_to(self, user: User) -> Self:
        """Of conversations that are hers: what is learned of her is nobody else's."""
        return self.filter(conversation__in=Conversation.objects.owned_by(user))


class Learned(models.Model):
    """That the text of a memory may have been made of a message, by reading the conversation afterwards: one
    for each message that was read for it, and of these the one that the model named last."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    message_uid = models.CharField(max_length=40)
    memory_uid = models.CharField(max_length=40, db_index=True)
    at = models.DateTimeField(default=timezone.now, editable=False)

    objects = LearnedQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("thing learned")
        verbose_name_plural = _("things learned")
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "message_uid", "memory_uid"], name="learned_once"
            )
        ]

    def __str__(self) -> str:
        return self.memory_uid


class LearningOff(models.Model):
    """That a person wants none of her conversations in an organisation read for what is to be remembered."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("learning switched off")
        verbose_name_plural = _("learning switched off")
        constraints = [
            models.UniqueConstraint(fields=["user", "organisation"], name="learning_off_once")
        ]

    def __str__(self) -> str:
        return f"{self.user_id}:{self.organisation_id}"
