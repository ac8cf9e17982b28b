"""What the audit log is told of the keys of workers."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from audit.models import AuditEntry
from audit.record import write

from .models import EnvironmentKey


def about_key(
    action: AuditEntry.Action, key: EnvironmentKey, *, actor: User | None, **details: Any
) -> AuditEntry:
    """Names it by id, with the environment that it opens."""
    return write(
        action,
        actor=actor,
        organisation_id=key.environment.organisation_id,
        details={
            "key": key.uid,
            "name": key.name,
            "environment": key.environment.uid,
            **details,
        },
    )
