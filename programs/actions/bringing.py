"""Uploads that a conversation begins with, copied before the transaction that makes it.

Copying takes long, and whoever held that transaction meanwhile would keep others from writing. A process
that dies in between leaves a note (`conversations.removals`) with which the copies go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from agents.models import Environment
from conversations import removals
from conversations.actions.files import Upload, check_size, require_files_in
from conversations.actions.stored_files import UPLOADS, chunks_of, open_file
from conversations.models import Conversation, FileResource, ForeignMark, StoredFile
from conversations.ratelimits import require_room
from harness.errors import NotFound
from harness.ids import new_conversation_id
from programs.actions.resources import RESOURCES, require_free, too_many
from tools_app.provenance import UPLOADED
from tools_app.workspace import Entry, Workspace, workspace_for

Uploads = Sequence[tuple[str, str]]
"""Of each upload its id and where its copy goes; empty: into `uploads`, by its own name."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What lies in the workspace of a conversation that is still to begin under the id `uid`."""

    uid: str
    copies: tuple[tuple[StoredFile, Entry], ...] = ()

    def give(self, conversation: Conversation) -> None:
        """Have the conversation know its files. In the transaction that makes it, so that they are foreign
        before anybody can read them. NotFound where one was deleted meanwhile."""
        if not self.copies:
            return
        removals.begun(self.uid)
        keys = {file.pk for file, _copy in self.copies}
        if StoredFile.objects.kept().filter(pk__in=keys).count() < len(keys):
            raise _no_file()
        FileResource.objects.bulk_create(
            FileResource(conversation=conversation, file=file, file_uid=file.uid, path=copy.path)
            for file, copy in self.copies
        )
        ForeignMark.objects.bulk_create(
            ForeignMark(
                conversation=conversation, path=copy.path, inode=copy.inode, source=UPLOADED
            )
            for _file, copy in self.copies
        )


@contextmanager
def bring_files(
    *,
    actor: User,
    organisation: Organisation,
    environment: Environment,
    files: Uploads,
    says: bool,
) -> Iterator[Brought]:
    """Copies of these, which go again unless the conversation has begun when this ends. Not to be entered
    from within a transaction. `says`: something is to be said in it at once.

    Raises what `add_resource` raises, and TooMany, before anything is copied, where the actor sends
    messages too fast to say anything."""
    uid = new_conversation_id()
    if not files:
        yield Brought(uid)
        return
    if says:
        require_room(actor)
    require_files_in(environment)
    if len(files) > RESOURCES:
        raise too_many()
    with removals.unless_begun(uid):
        workspace = Workspace(workspace_for(uid))
        mine = StoredFile.objects.visible_to(actor).filter(organisation=organisation)
        copies = []
        for file_uid, path in files:
            file = mine.filter(uid=file_uid).first()
            if file is None:
                raise _no_file()
            copies.append((file, _copy(actor, environment, workspace, file, path)))
        yield Brought(uid, tuple(copies))


def _copy(
    actor: User, environment: Environment, workspace: Workspace, file: StoredFile, path: str
) -> Entry:
    folder, _slash, name = (path or f"{UPLOADS}/{file.filename}").rpartition("/")
    limit = environment.upload_limit
    with open_file(actor=actor, file=file) as source:
        upload = Upload(name=name, size=file.size, chunks=chunks_of(source))
        check_size(upload, limit)
        stored = workspace.save_upload(name, upload.chunks, limit, folder=folder)
    require_free(path, stored)
    return stored


def _no_file() -> NotFound:
    return NotFound(_("There is no such file."))
