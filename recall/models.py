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
from memory.models import MemoryStore
from memory.models.store import DESCRIPTION_LIMIT, NAME_LIMIT

MOUNTED = "/mnt/memory"
"""Below this commands find the stores of their conversation."""


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
    """Best first: ids of memory, version and store, the score, the words that it was found by, and how near
    its vector is to the message's."""
    passages: Any = models.JSONField(default=list)
    """Best first: ids of passage and document, and the same of how they were found."""
    turns: Any = models.JSONField(default=list)
    """Best first: of turns that a summary stands for, message and answer, the score and the words."""
    confidence = models.FloatField()
    event_uid = models.CharField(max_length=40, blank=True)
    """Of the event whose words it was found by: the message, or the last edit of it."""
    waits = models.BooleanField(default=False)
    """For the vector of these words, which a service makes: the next run looks once more."""
    by_words_alone = models.BooleanField(default=False)
    """That service did not answer in time."""
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

    @property
    def any(self) -> bool:
        """Whether there was anything to be reminded of."""
        return bool(self.hits or self.passages or self.turns)


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


class Access(models.TextChoices):
    READ_WRITE = "read_write", _("read and write")
    READ_ONLY = "read_only", _("read only")


class AttachedStore(models.Model):
    """That a conversation was given a store when it began, under the name that the store had then."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    store = models.ForeignKey(MemoryStore, on_delete=models.CASCADE, related_name="+")
    access = models.CharField(max_length=10, choices=Access, default=Access.READ_WRITE)
    instructions = models.TextField(blank=True)
    name = models.CharField(max_length=NAME_LIMIT)
    description = models.CharField(max_length=DESCRIPTION_LIMIT, blank=True)
    slug = models.CharField(max_length=100)
    """The name of its folder."""
    laid_out: Any = models.JSONField(default=dict)
    """What its folder was last seen to hold: SHA-256 by path."""
    problems: Any = models.JSONField(default=list)
    """Why files of it are not kept, in words, by path."""
    left_by_strangers = models.BooleanField(default=False)
    """Of changes there that are not taken in yet: strangers may have worded them."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        verbose_name = _("memory store of a conversation")
        verbose_name_plural = _("memory stores of conversations")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "store"], name="attached_store_once"),
            models.UniqueConstraint(fields=["conversation", "slug"], name="attached_store_slug"),
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}:{self.slug}"

    @property
    def path(self) -> str:
        """Where commands find it."""
        return f"{MOUNTED}/{self.slug}"
