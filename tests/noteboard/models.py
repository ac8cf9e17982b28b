"""Notes that agents pinned for the people they work for."""

from __future__ import annotations

from typing import Self

from django.db import models

from accounts.models import User
from conversations.models import Conversation


class NoteQuerySet(models.QuerySet["Note"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(conversation__in=Conversation.objects.visible_to(user))


class Note(models.Model):
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    seq = models.PositiveBigIntegerField()
    text = models.TextField()

    objects = NoteQuerySet.as_manager()

    class Meta:
        ordering = ["conversation", "seq"]

    def __str__(self) -> str:
        return self.text
