"""A conversation that goes while its title is asked for takes no spending along: it is counted before."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import pre_delete
from django.dispatch import receiver

from .actions.naming import lose
from .models import TitleRequest


@receiver(pre_delete, sender=TitleRequest, dispatch_uid="titles.deletions")
def _count(instance: TitleRequest, **_kwargs: Any) -> None:
    lose(instance)
