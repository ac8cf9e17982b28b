"""What people put into a conversation's workspace. Tools write there by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import Environment
from conversations.actions.own import require_own, require_writable
from conversations.checkpoints import bring_back_due
from conversations.models import Conversation
from conversations.provenance import TableProvenance
from conversations.removals import Note
from harness.errors import Invalid, TooLarge
from tools_app.confinement import shown
from tools_app.provenance import UPLOADED
from tools_app.workspace import Entry, Workspace, workspace_for


def require_files_here(conversation: Conversation) -> None:
    """Invalid where the files an agent works with are on a worker's machine."""
    require_files_in(conversation.environment)


def require_files_in(environment: Environment) -> None:
    """The same of a conversation that is still to begin."""
    if environment.has_workers:
        raise Invalid(
            _("The files of this conversation are on a worker's machine; none can be put there."),
            field="files",
            hint=_("Put it on that machine, or write what it says into a message."),
        )


@dataclass(frozen=True, slots=True)
class Upload:
    name: str
    """As the sender calls it; folders in it are ignored."""
    size: int
    """Bytes that were sent, also of a file of which nothing was kept because it was too long."""
    chunks: Iterable[bytes]


def add_files(
    *,
    actor: User,
    conversation: Conversation,
    uploads: Sequence[Upload],
    folder: str = "",
    replace: bool = False,
    note: Note = lambda _path, _inode: None,
) -> list[Entry]:
    """Store all of `uploads` in `folder`, or none. A name that is taken gets a number, unless the
    sender says that it may be replaced, as only the conversation's owner may. `note` (of
    `removals.each_unless_begun`) is told of each before it has its name.

    Raises NotFound, Invalid for no file or an impossible name or folder, and TooLarge for a file
    above the environment's upload limit.
    """
    if replace:
        require_own(actor, conversation)
    require_writable(actor, conversation)
    if not uploads:
        raise Invalid(_("No file was sent."), field="files", hint=_("Choose at least one file."))
    require_files_here(conversation)
    limit = conversation.environment.upload_limit
    for upload in uploads:
        check_size(upload, limit)
    bring_back_due(conversation.pk)
    workspace = Workspace(workspace_for(conversation.uid))
    known = {entry.path for entry in workspace.walk()} if replace else set()
    marks = TableProvenance(conversation.pk)
    stored: list[Entry] = []

    def first(path: str, inode: int) -> None:
        note(path, inode)
        marks.mark_file(path, UPLOADED, inode)

    try:
        for upload in uploads:
            entry = workspace.save_upload(
                upload.name,
                upload.chunks,
                limit,
                folder=folder,
                replace=replace,
                first=first,
            )
            stored.append(entry)
    except Exception:
        for entry in stored:
            if entry.path not in known:
                workspace.remove(entry.path)
        raise
    return stored


def check_size(upload: Upload, limit: int) -> None:
    """Raises TooLarge."""
    if upload.size > limit:
        raise TooLarge(
            _("“%(name)s” has %(size)s and is larger than %(limit)s, the most one file may have.")
            % {
                "name": shown(upload.name),
                "size": megabytes(upload.size),
                "limit": megabytes(limit),
            },
            field="files",
            hint=_("Send a smaller file, or split it."),
        )


def megabytes(size: int) -> str:
    """A limit in words: `10 MiB`, `1.5 MiB`, `200 KiB`, `12 bytes`."""
    for unit, factor in (("MiB", 1024**2), ("KiB", 1024)):
        if size >= factor:
            return f"{size / factor:.1f}".removesuffix(".0") + f" {unit}"
    return _("%(size)d bytes") % {"size": size}
