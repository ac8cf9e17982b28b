"""What the audit log is told of evals: who may let a version pass depends on them."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from agents.models import Agent
from audit.models import AuditEntry
from audit.record import about_setting

from .models import Suite


def about_suite(action: AuditEntry.Action, actor: User, suite: Suite, **details: Any) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=suite.organisation_id,
        suite=suite.uid,
        name=suite.name,
        **details,
    )


def about_release(action: AuditEntry.Action, actor: User, agent: Agent, **details: Any) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=agent.organisation_id,
        agent=agent.uid,
        name=agent.name,
        **details,
    )
