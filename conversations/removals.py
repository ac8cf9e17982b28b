"""Deleted conversations and uploads, whoever deletes: their files are noted, and removed after them. A
conversation is locked first. Uploads under way are noted as well, the files of conversations that are to
begin, and single files of a workspace that stays.

A process that dies in between leaves the note, and a sweep of the next one finishes. Whether somebody
may delete them is the question of `actions.conversations` and `actions.stored_files`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext as _

from harness.errors import AgentError, Conflict, Invalid, NotFound
from tools_app.workspace import Workspace, remove_workspace, workspace_for

from .models import Conversation, Removal, StoredFile
from .storedbytes import is_of_upload, remove_bytes

logger = logging.getLogger(__name__)

AT_A_TIME = 200
"""Workspaces and uploads whose files one sweep removes; the next one goes on."""
UNDER_WAY = timedelta(days=1)
"""So long an upload may take, or a conversation to begin, after its first byte."""


@receiver(pre_delete, sender=Conversation, dispatch_uid="conversations.removals.lock")
def _lock(instance: Conversation, **_kwargs: Any) -> None:
    """Before anything of it goes: whoever writes to what belongs to a conversation locks it first too."""
    Conversation.objects.select_for_update().filter(pk=instance.pk).values_list("pk").first()


@receiver(post_delete, sender=Conversation, dispatch_uid="conversations.removals")
@receiver(post_delete, sender=StoredFile, dispatch_uid="conversations.removals.uploads")
def _note(instance: Conversation | StoredFile, **_kwargs: Any) -> None:
    """Also where a person or an organisation goes, and its conversations and uploads with it."""
    Removal.objects.get_or_create(uid=instance.uid, path="")


@contextmanager
def unless_begun(uid: str) -> Iterator[None]:
    """What is put into the workspace of a conversation that is to begin, or stored as such an upload, goes
    again, however this ends, unless `begun` was told in a transaction that succeeded. Not to be entered from
    within one."""
    Removal.objects.create(uid=uid, not_before=timezone.now() + UNDER_WAY)
    try:
        yield
    finally:
        if Removal.objects.filter(uid=uid, path="").exists():
            clear([uid])


def begun(uid: str) -> None:
    """Its files stay. In the transaction that makes its row; Conflict where they may be gone by now."""
    if not Removal.objects.filter(uid=uid, path="").delete()[0]:
        raise Conflict(_("Storing the files took too long."), hint=_("Try again."))


def clear(uids: Iterable[str]) -> None:
    """Remove the files of these, after the transaction. What cannot be removed now stays noted."""
    gone = []
    for uid in uids:
        try:
            if is_of_upload(uid):
                remove_bytes(uid)
            else:
                remove_workspace(uid)
        except (AgentError, OSError) as problem:
            logger.warning("the files of %s, which was deleted, remain: %s", uid, problem)
        else:
            gone.append(uid)
    Removal.objects.filter(uid__in=gone).delete()


def clear_left() -> None:
    """Remove what was left, in any order, so that one that cannot be removed blocks no other."""
    due = Removal.objects.exclude(not_before__gt=timezone.now()).order_by("?")
    clear(list(due.filter(path="").values_list("uid", flat=True)[:AT_A_TIME]))
    for uid, path in due.exclude(path="").values_list("uid", "path")[:AT_A_TIME]:
        _clear_path(uid, path)


def note_paths(conversation: Conversation, paths: Iterable[str]) -> None:
    """That these files of its workspace are to go. Needs the transaction that forgets them."""
    notes = [Removal(uid=conversation.uid, path=path) for path in paths]
    Removal.objects.bulk_create(notes, ignore_conflicts=True)


def clear_paths(conversation_uid: str, paths: Sequence[str]) -> None:
    """Remove what was noted of this workspace, after the transaction."""
    for path in paths:
        _clear_path(conversation_uid, path)


def _clear_path(uid: str, path: str) -> None:
    """Nothing is made anew for a conversation that is gone: whoever deleted it cleared its notes. What was
    put there since stays."""
    theirs = Conversation.objects.filter(uid=uid).exclude(file_resources__path=path)
    try:
        if theirs.exists():
            Workspace(workspace_for(uid)).remove(path)
    except (NotFound, Invalid):
        pass  # a folder or a link may stand there by now
    except (AgentError, OSError) as problem:
        logger.warning("a copy in the workspace of %s remains for now: %s", uid, problem)
        return
    Removal.objects.filter(uid=uid, path=path).delete()
