"""A conversation that goes takes what was learned of it along, and no spending: what is asked is counted
before."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import pre_delete
from django.dispatch import receiver

from .actions.analysing import lose
from .forgetting import forget_memories_of
from .models import Analysis, Learned


@receiver(pre_delete, sender=Analysis, dispatch_uid="learning.deletions")
def _count_and_forget(instance: Analysis, **_kwargs: Any) -> None:
    lose(instance)
    learned = Learned.objects.filter(conversation=instance.conversation)
    forget_memories_of(instance.conversation, learned.values_list("memory_uid", flat=True))
