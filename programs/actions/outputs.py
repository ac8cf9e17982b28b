"""What agents made for whoever asked: the files in `outputs/` of a conversation's workspace, as files
that programs list, fetch and delete. Each keeps its id as long as it keeps its path.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import BinaryIO

from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import require_own, require_readable
from conversations.models import Conversation, OutputFile
from harness.errors import AgentError, NotFound
from tools_app.workspace import LISTING_LIMIT, OUTPUTS, Entry, Workspace, workspace_for


@dataclass(frozen=True, slots=True)
class Output:
    row: OutputFile
    entry: Entry


def outputs_of(*, actor: User, conversation: Conversation) -> list[Output]:
    """Those there are now, oldest id first; none where the files are on a worker's machine. Raises
    NotFound for somebody else's conversation."""
    require_readable(actor, conversation)
    if conversation.environment.has_workers:
        return []
    found: dict[str, Entry] = {}
    try:
        for entry in Workspace(workspace_for(conversation.uid)).walk(OUTPUTS):
            if entry.kind == "file" and len(found) < LISTING_LIMIT:
                found[_uid(conversation, entry.path)] = entry
    except AgentError:  # no such folder yet, or it is something else
        pass
    OutputFile.objects.bulk_create(
        [OutputFile(uid=uid, conversation=conversation, path=e.path) for uid, e in found.items()],
        ignore_conflicts=True,
    )
    rows = OutputFile.objects.filter(conversation=conversation, uid__in=found)
    return [Output(row, found[row.uid]) for row in rows.select_related("conversation")]


def find_output(*, actor: User, uid: str) -> Output:
    """Raises NotFound also where the file is gone."""
    row = (
        OutputFile.objects.visible_to(actor).select_related("conversation").filter(uid=uid).first()
    )
    if row is not None:
        try:
            entry = Workspace(workspace_for(row.conversation.uid)).stat(row.path)
        except AgentError:
            entry = None
        if entry is not None and entry.kind == "file":
            return Output(row, entry)
    raise NotFound(_("There is no such file."))


def open_output(*, actor: User, uid: str) -> tuple[Output, BinaryIO]:
    """The file as it is now; the caller closes it."""
    output = find_output(actor=actor, uid=uid)
    root = workspace_for(output.row.conversation.uid)
    return output, Workspace(root).open_for_read(output.row.path)


def delete_output(*, actor: User, uid: str) -> None:
    """Take the file out of the workspace."""
    row = find_output(actor=actor, uid=uid).row
    require_own(actor, row.conversation)
    Workspace(workspace_for(row.conversation.uid)).remove(row.path)
    row.delete()


def _uid(conversation: Conversation, path: str) -> str:
    digest = hashlib.sha256(f"{conversation.uid}\0{path}".encode()).digest()[:16]
    return f"file_{base64.b32encode(digest).decode().rstrip('=').lower()}"
