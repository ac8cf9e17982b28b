"""What staff do with files that an agent's conversations share; the conversations use the tools."""

from __future__ import annotations

from django.db import transaction

from accounts.models import User
from accounts.staff import require_staff
from audit.models import AuditEntry
from sharedfiles.auditing import about_shared_file
from sharedfiles.models import SharedVersion
from sharedfiles.versions import Shelf

CHANGE = "sharedfiles.change_sharedversion"


def restore_shared_version(
    *, actor: User, version: SharedVersion, expected_sha256: str
) -> SharedVersion:
    """Bring this version back, exactly, as the newest one.

    Raises Forbidden, NotFound for a version without content, and Conflict when the file is not the one
    whose SHA-256 is expected (empty: none is shared).
    """
    require_staff(actor, CHANGE)
    shelf = Shelf(version.organisation_id, version.agent_id)
    old = shelf.version(version.path, version.number)
    with transaction.atomic():
        row = shelf.store(
            old.path,
            bytes(old.content),
            expected_sha256,
            owner_id=actor.pk,
            restored_from=old.number,
        )
        about_shared_file(
            AuditEntry.Action.SHARED_RESTORED, row, actor=actor, restored_from=old.number
        )
    return row


def remove_shared_file(
    *, actor: User, version: SharedVersion, expected_sha256: str
) -> SharedVersion:
    """Share the file of this version no more; its versions stay. Raises Forbidden, NotFound where
    nothing is shared, and Conflict when it is not the file whose SHA-256 is expected."""
    require_staff(actor, CHANGE)
    shelf = Shelf(version.organisation_id, version.agent_id)
    with transaction.atomic():
        row = shelf.store(version.path, None, expected_sha256, owner_id=actor.pk)
        about_shared_file(AuditEntry.Action.SHARED_REMOVED, row, actor=actor)
    return row
