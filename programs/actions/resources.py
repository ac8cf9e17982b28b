"""Uploads that programs put into a session that has begun, as copies in its workspace, or take out again.

A process that dies in between leaves a note (`conversations.removals`): no copy stays whose row never came or
has gone, and no row loses its copy.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations import removals
from conversations.actions.files import Upload, add_files, require_files_here
from conversations.actions.own import require_own
from conversations.actions.stored_files import UPLOADS, chunks_of, open_file
from conversations.models import Conversation, FileResource, StoredFile
from harness.errors import Conflict, LimitReached, NotFound
from tools_app.workspace import Entry

RESOURCES = 500


def add_resource(
    *, actor: User, conversation: Conversation, file_uid: str, path: str = ""
) -> FileResource:
    """Copy a file into the workspace. `path` is relative to it; empty: `uploads/` and its name.

    Raises NotFound for a file or conversation that is not the actor's, Conflict for a path that is
    taken, TooLarge above the environment's upload limit, Invalid for an impossible path.
    """
    require_own(actor, conversation)
    require_files_here(conversation)
    file = (
        StoredFile.objects.visible_to(actor)
        .filter(uid=file_uid, organisation=conversation.organisation)
        .first()
    )
    if file is None:
        raise NotFound(_("There is no such file."))
    folder, _slash, name = (path or f"{UPLOADS}/{file.filename}").rpartition("/")
    _require_room(conversation)
    # Before the row and not with it: that the file is foreign is known before anybody can read it.
    with removals.each_unless_begun(conversation.uid) as note:
        with open_file(actor=actor, file=file) as source:
            upload = Upload(name=name, size=file.size, chunks=chunks_of(source))
            stored = add_files(
                actor=actor,
                conversation=conversation,
                uploads=[upload],
                folder=folder,
                note=note,
            )[0]
        require_free(path, stored)
        with transaction.atomic():
            Conversation.objects.select_for_update(no_key=True).filter(pk=conversation.pk).first()
            _require_room(conversation)
            removals.begun(conversation.uid, [stored.path])
            return FileResource.objects.create(
                conversation=conversation, file=file, file_uid=file.uid, path=stored.path
            )


def require_free(path: str, stored: Entry) -> None:
    """Conflict where another file has the `path` that was wanted, if one was."""
    if path and stored.path != path.strip("/"):
        raise Conflict(
            _("There is a file of this name already."),
            hint=_("Choose another mount_path, or leave it out."),
        )


def _require_room(conversation: Conversation) -> None:
    if FileResource.objects.filter(conversation=conversation).count() >= RESOURCES:
        raise too_many()


def too_many() -> LimitReached:
    words = _("A session has at most %(limit)d resources.") % {"limit": RESOURCES}
    return LimitReached(words, hint=_("Delete some first."))


def remove_resource(*, actor: User, conversation: Conversation, resource: FileResource) -> None:
    """Take the copy out of the workspace again, where it is still there."""
    require_own(actor, conversation)
    if resource.conversation_id != conversation.pk:
        raise NotFound(_("There is no such resource."))
    with transaction.atomic():
        FileResource.objects.filter(pk=resource.pk).delete()
        removals.note_paths(conversation, [resource.path])
        transaction.on_commit(partial(removals.clear_paths, conversation.uid, [resource.path]))
