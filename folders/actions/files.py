"""Files of a folder: who may change it puts them in and takes them out; what begins there gets copies."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from typing import BinaryIO

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from conversations.actions.files import Upload
from conversations.actions.stored_files import chunks_of, delete_file, open_file, store_file
from folders.access import editable_folder, visible_folder
from folders.auditing import about_folder
from folders.models import Folder, FolderFile
from harness.errors import LimitReached, NotFound

CHANGED = AuditEntry.Action.FOLDER_CHANGED
MOST = 20
"""Files of a folder."""


def add_folder_file(*, actor: User, folder: Folder, upload: Upload) -> FolderFile:
    """Raises NotFound, Forbidden, LimitReached, and as `store_file`: it counts among the actor's files."""
    with transaction.atomic():
        _require_room(editable_folder(actor, folder))
    file = store_file(
        actor=actor,
        organisation=folder.organisation,
        filename=upload.name,
        mime_type=mimetypes.guess_type(upload.name)[0] or "",
        chunks=upload.chunks,
    )
    try:
        with transaction.atomic():
            held = editable_folder(actor, folder)
            _require_room(held)
            row = FolderFile.objects.create(folder=held, file=file)
            about_folder(CHANGED, actor, held, added=file.filename)
            return row
    except BaseException:
        delete_file(actor=actor, file=file)
        raise


def remove_folder_file(*, actor: User, folder: Folder, file_uid: str) -> None:
    """Copies in conversations stay. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = editable_folder(actor, folder)
        row = _file(held, file_uid)
        about_folder(CHANGED, actor, held, removed=row.file.filename)
        delete_file(actor=row.file.owner, file=row.file)


def open_folder_file(*, actor: User, folder: Folder, file_uid: str) -> tuple[FolderFile, BinaryIO]:
    """For whoever sees the folder. Raises NotFound."""
    row = _file(visible_folder(actor, folder), file_uid)
    return row, open_file(actor=row.file.owner, file=row.file)


def uploads_of(folder: Folder) -> list[Upload]:
    """What is copied when a conversation begins."""
    return [
        Upload(row.file.filename, row.file.size, _bytes_of(row)) for row in folder.files.there()
    ]


def _bytes_of(row: FolderFile) -> Iterator[bytes]:
    with open_file(actor=row.file.owner, file=row.file) as source:
        yield from chunks_of(source)


def _file(folder: Folder, file_uid: str) -> FolderFile:
    row = folder.files.there().filter(file__uid=file_uid).first()
    if row is None:
        raise NotFound(_("There is no such file."))
    return row


def _require_room(folder: Folder) -> None:
    if folder.files.count() >= MOST:
        raise LimitReached(
            _("A folder has at most %(limit)d files.") % {"limit": MOST},
            hint=_("Remove one first."),
        )
