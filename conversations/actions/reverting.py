"""Putting files back: one that the agent changed, or all, to how they were before a change.

The dialogue stays where it is. That is done by `conversations.checkpoints`, right after, and can be
undone in the same way; files that go back with the dialogue are `branching`'s.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.branching import (
    require_files_settled,
    require_quiet,
    require_quiet_files,
)
from conversations.actions.files import require_files_here
from conversations.actions.own import own_conversation
from conversations.checkpoints import ask_for_files, before
from conversations.fileevents import FilesRestored, FilesReverted
from conversations.log import append
from conversations.models import Checkpoint, Conversation, Event
from harness.errors import Conflict, NotFound
from harness.events import AgentToolResult
from harness.history import Entry
from tools_app.confinement import parse_path


def revert_files(
    *, actor: User, conversation: Conversation, event_uid: str, path: str = ""
) -> Event:
    """Have the file at `path`, or all, brought back to how they were before the turn of a call's result, or
    before an `x.files_restored`, which undoes that; of one that was about some files alone, just these.

    Raises NotFound, Invalid for the path and for files on a worker's machine, Conflict while it works and
    where nothing was kept.
    """
    only: tuple[str, ...] = ("/".join(parse_path(path)),) if path else ()
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        require_files_here(held)
        require_quiet(held)
        require_files_settled(held)
        require_quiet_files(held)
        row = Event.objects.filter(conversation=held, uid=event_uid).first()
        if row is None:
            raise NotFound(_("There is no such event."))
        value, found = row.value, None
        if isinstance(value, AgentToolResult):
            found = before(held.pk, row.seq)
        elif isinstance(value, FilesRestored):
            found = Checkpoint.objects.filter(conversation=held, uid=value.kept).first()
            only = only or _asked_for(row)
        if found is None or not found.snapshot:
            raise Conflict(_("How the files were before this was not kept."))
        event = FilesReverted(checkpoint=found.uid, paths=only)
        reverted = append(held.pk, [Entry.of(event)], actor=actor)[0]
        ask_for_files(held.pk)
    return reverted


def _asked_for(restored: Event) -> tuple[str, ...]:
    """The files that it was about; none: all."""
    asked = Event.objects.filter(
        conversation=restored.conversation_id, type="x.files_reverted", seq__lt=restored.seq
    )
    last = asked.order_by("-seq").first()
    asked_for, told = last.value if last is not None else None, restored.value
    if not isinstance(asked_for, FilesReverted) or not isinstance(told, FilesRestored):
        return ()
    return asked_for.paths if asked_for.checkpoint == told.checkpoint else ()
