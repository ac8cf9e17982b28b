"""A conversation that goes takes what was learned of it along, and no spending: what is asked is counted
before."""

from __future__ import annotations

from typing import Any

from django.db.models import Model, QuerySet
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from conversations.models import Conversation

from .actions.analysing import lose
from .forgetting import forget_memories_of
from .models import Analysis, Learned


@receiver(pre_delete, sender=Analysis, dispatch_uid="learning.deletions")
def _count_and_forget(
    instance: Analysis, origin: Model | QuerySet[Any] | None = None, **_kwargs: Any
) -> None:
    lose(instance)
    if _is_of_conversations(origin):
        learned = Learned.objects.filter(conversation=instance.conversation)
        forget_memories_of(instance.conversation, learned.values_list("memory_uid", flat=True))


def _is_of_conversations(origin: Model | QuerySet[Any] | None) -> bool:
    """Where a person or an organisation goes, her store goes by itself, and nothing may be written there."""
    kind = origin.model if isinstance(origin, QuerySet) else type(origin)
    return kind is Conversation
