"""What the audit log is told of shared files."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from audit.models import AuditEntry
from audit.record import write

from .models import SharedVersion


def about_shared_file(
    action: AuditEntry.Action, version: SharedVersion, *, actor: User, **details: Any
) -> AuditEntry:
    """Names the new version; what is in it stands in its row."""
    return write(
        action,
        actor=actor,
        organisation_id=version.organisation_id,
        input_sha256=version.sha256,
        details={
            "agent": version.agent.uid,
            "path": version.path,
            "version": version.number,
            **details,
        },
    )
