"""What the audit log is told of folders: others are told what stands in them."""

from __future__ import annotations

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting

from .models import Folder


def about_folder(action: AuditEntry.Action, actor: User, folder: Folder, **details: str) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=folder.organisation_id,
        folder=folder.uid,
        name=folder.name,
        **details,
    )
