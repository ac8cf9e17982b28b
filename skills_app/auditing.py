"""What the audit log is told of skills."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting

from .models import Skill


def about_skill(action: AuditEntry.Action, actor: User, skill: Skill, **details: Any) -> None:
    """Names the skill; what is in it stands in its rows. A person's own is nobody else's matter, but what
    she did stands among her own entries."""
    about_setting(
        action,
        actor=actor,
        organisation_id=skill.organisation_id if skill.owner_id is None else None,
        skill=skill.uid,
        name=skill.name,
        **details,
    )
