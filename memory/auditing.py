"""What the audit log is told of memory: what happens to stores, and what is taken out for good."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting

from .models import MemoryStore


def about_store(action: AuditEntry.Action, actor: User, store: MemoryStore, **details: Any) -> None:
    """Names it by id; never what is in it. A person's own is nobody else's matter, but stands among
    her own entries."""
    about_setting(
        action,
        actor=actor,
        organisation_id=store.organisation_id if store.owner_id is None else None,
        store=store.uid,
        **details,
    )
