"""Letting a file of a conversation's workspace steer the agent, in exactly the words that were read."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting
from conversations.actions.own import own_conversation
from conversations.models import Conversation
from harness.errors import Conflict, NotFound
from steering.models import TrustedFile
from steering.workspacefiles import files_of
from tools_app.workspace import workspace_for


def trust_file(*, actor: User, conversation: Conversation, path: str, sha256: str) -> TrustedFile:
    """From the next run on, its words are instructions, as long as they stay these.

    Raises NotFound, Forbidden where it is not hers, Conflict where the file says something else by now.
    """
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        there = {found.path: found for found in files_of(held, workspace_for(held.uid))}
        if path not in there:
            raise NotFound(_("There is no such steering file in the workspace."))
        if there[path].sha256 != sha256:
            raise Conflict(
                _("The file has changed since you read it."), hint=_("Read it again, then decide.")
            )
        row, _made = TrustedFile.objects.update_or_create(
            conversation=held, path=path, defaults={"sha256": sha256, "by": actor}
        )
        _tell(AuditEntry.Action.STEERING_TRUSTED, actor, held, path, sha256)
        return row


def distrust_file(*, actor: User, conversation: Conversation, path: str) -> None:
    """From the next run on it is a file as any other. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        row = TrustedFile.objects.filter(conversation=held, path=path).first()
        if row is None:
            raise NotFound(_("There is no such steering file in the workspace."))
        _tell(AuditEntry.Action.STEERING_DISTRUSTED, actor, held, path, row.sha256)
        row.delete()


def _tell(
    action: AuditEntry.Action, actor: User, held: Conversation, path: str, sha256: str
) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=held.organisation_id,
        conversation=held.uid,
        path=path,
        sha256=sha256,
    )
