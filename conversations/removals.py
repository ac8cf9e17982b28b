"""Deleted conversations, whoever deletes: each is locked first, its files are noted, and removed after it.

A process that dies in between leaves the note, and a sweep of the next one finishes. Whether somebody
may delete a conversation is `actions.conversations`' question.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from harness.errors import AgentError
from tools_app.workspace import remove_workspace

from .models import Conversation, Removal

logger = logging.getLogger(__name__)

AT_A_TIME = 200
"""Workspaces that one sweep removes; the next one goes on."""


@receiver(pre_delete, sender=Conversation, dispatch_uid="conversations.removals.lock")
def _lock(instance: Conversation, **_kwargs: Any) -> None:
    """Before anything of it goes: whoever writes to what belongs to a conversation locks it first too."""
    Conversation.objects.select_for_update().filter(pk=instance.pk).values_list("pk").first()


@receiver(post_delete, sender=Conversation, dispatch_uid="conversations.removals")
def _note(instance: Conversation, **_kwargs: Any) -> None:
    """Also where a person or an organisation goes, and its conversations with it."""
    Removal.objects.get_or_create(uid=instance.uid)


def clear(uids: Iterable[str]) -> None:
    """Remove these workspaces, after the transaction. One that cannot be removed now stays noted."""
    gone = []
    for uid in uids:
        try:
            remove_workspace(uid)
        except (AgentError, OSError) as problem:
            logger.warning("the files of the deleted conversation %s remain: %s", uid, problem)
        else:
            gone.append(uid)
    Removal.objects.filter(uid__in=gone).delete()


def clear_left() -> None:
    """Remove what deletions left, in any order, so that one that cannot be removed blocks no other."""
    clear(list(Removal.objects.order_by("?").values_list("uid", flat=True)[:AT_A_TIME]))
