"""What the audit log is told of approvals and of rules."""

from __future__ import annotations

from typing import Any

from accounts.models import Organisation, User
from audit.models import AuditEntry
from audit.record import write

from .models import Approval, PolicyRule


def about_approval(
    action: AuditEntry.Action,
    approval: Approval,
    *,
    actor: User | None = None,
    reason: str = "",
    **details: Any,
) -> AuditEntry:
    return write(
        action,
        actor=actor,
        organisation_id=approval.organisation_id,
        conversation_uid=approval.conversation.uid,
        approval_uid=approval.uid,
        call_uid=approval.call_uid,
        rule_uid=approval.rule_uid,
        tool=approval.tool,
        input_sha256=approval.input_sha256,
        reason=reason,
        details=details,
    )


def about_rule(
    action: AuditEntry.Action,
    rule: PolicyRule,
    *,
    actor: User,
    organisation: Organisation | None,
    reason: str = "",
    **details: Any,
) -> AuditEntry:
    approval = rule.made_from
    return write(
        action,
        actor=actor,
        organisation=organisation,
        conversation_uid=rule.conversation.uid if rule.conversation else "",
        approval_uid=approval.uid if approval else "",
        rule_uid=rule.uid,
        tool=rule.tool,
        reason=reason,
        details={"level": rule.scope, "permission": rule.permission, "when": rule.when, **details},
    )
