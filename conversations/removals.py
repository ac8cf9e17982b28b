"""Deleted conversations and uploads, whoever deletes: their files are noted, and removed after them. A
conversation is locked first. Uploads under way are noted as well, the files of conversations that are to
begin, and single files of a workspace that stays, also those that are put there before a row tells of them.

A process that dies in between leaves the note, and a sweep of the next one finishes. Whether somebody
may delete them is the question of `actions.conversations` and `actions.stored_files`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
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

Note = Callable[[str, int], None]
"""Told of a file's path and number before it has that name."""

AT_A_TIME = 200
"""Workspaces and uploads whose files one sweep removes; the next one goes on."""
UNDER_WAY = timedelta(days=1)
"""So long an upload may take, or a conversation to begin, after its first byte."""
AT_ONCE = 60.0
"""Seconds within which what was noted has its name. A file that changed later is somebody's work."""


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
        clear([uid])


@contextmanager
def each_unless_begun(uid: str) -> Iterator[Note]:
    """The same of single files in a workspace that is there, each of which is noted."""
    noted: list[str] = []

    def note(path: str, inode: int) -> None:
        now = timezone.now()
        known = {"inode": inode, "not_before": now + UNDER_WAY, "created_at": now}
        Removal.objects.update_or_create(uid=uid, path=path, defaults=known)
        noted.append(path)

    try:
        yield note
    finally:
        clear_paths(uid, noted)


def begun(uid: str, paths: Sequence[str] = ("",)) -> None:
    """Its files stay, or these. In the transaction that makes their row; Conflict where they may be gone."""
    if Removal.objects.filter(uid=uid, path__in=paths).delete()[0] < len(paths):
        raise Conflict(_("Storing the files took too long."), hint=_("Try again."))


def make_room(uid: str) -> None:
    """Before another conversation begins under an id that one had which was deleted: its files go now, and
    not later, when they would be the new one's. Conflict where they cannot. Not within a transaction."""
    clear([uid])
    if Removal.objects.filter(uid=uid, path="").exists():
        raise Conflict(
            _("The files of the conversation that was deleted here are still being removed."),
            hint=_("Try again in a moment."),
        )


def clear(uids: Iterable[str]) -> None:
    """Remove the files of these, after the transaction, where nobody else has. What cannot be removed now
    stays noted."""
    gone = []
    for uid in uids:
        noted = Removal.objects.filter(uid=uid, path="").exists
        if not noted():
            continue
        try:
            if is_of_upload(uid):
                remove_bytes(uid)
            else:
                # Who had to wait for another remover finds what may be another conversation's by now.
                remove_workspace(uid, still=noted)
        except (AgentError, OSError) as problem:
            logger.warning("the files of %s, which was deleted, remain: %s", uid, problem)
        else:
            gone.append(uid)
    Removal.objects.filter(uid__in=gone).delete()


def clear_left() -> None:
    """Remove what was left, in any order, so that one that cannot be removed blocks no other."""
    due = Removal.objects.exclude(not_before__gt=timezone.now()).order_by("?")
    clear(list(due.filter(path="").values_list("uid", flat=True)[:AT_A_TIME]))
    for note in due.exclude(path="")[:AT_A_TIME]:
        _clear_path(note)


def note_paths(conversation: Conversation, paths: Iterable[str]) -> None:
    """That these files of its workspace are to go. Needs the transaction that forgets them."""
    notes = [Removal(uid=conversation.uid, path=path) for path in paths]
    Removal.objects.bulk_create(notes, ignore_conflicts=True)


def clear_paths(conversation_uid: str, paths: Sequence[str]) -> None:
    """Remove what was noted of this workspace, after the transaction."""
    for note in Removal.objects.filter(uid=conversation_uid, path__in=paths):
        _clear_path(note)


def _clear_path(note: Removal) -> None:
    """Nothing is made anew for a conversation that is gone: whoever deleted it cleared its notes. What was
    put there since, or gone on with, stays."""
    theirs = Conversation.objects.filter(uid=note.uid).exclude(file_resources__path=note.path)
    try:
        if theirs.exists():
            workspace = Workspace(workspace_for(note.uid))
            file = workspace.stat(note.path)
            late = file.changed > note.created_at.timestamp() + AT_ONCE
            if not note.inode or (file.inode == note.inode and not late):
                workspace.remove(note.path)
    except (NotFound, Invalid):
        pass  # a folder or a link may stand there by now
    except (AgentError, OSError) as problem:
        logger.warning("a copy in the workspace of %s remains for now: %s", note.uid, problem)
        return
    Removal.objects.filter(pk=note.pk, inode=note.inode).delete()
