"""Adds to the audit log, in the transaction of what it tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.happenings import Happening
from accounts.models import Organisation, User

from .models import (
    Approval,
    AuditEntry,
    EnvironmentKey,
    PolicyRule,
    SharedVersion,
    Vault,
    VaultCredential,
)

Action = AuditEntry.Action


def about_approval(
    action: AuditEntry.Action,
    approval: Approval,
    *,
    actor: User | None = None,
    reason: str = "",
    **details: Any,
) -> AuditEntry:
    return AuditEntry.objects.create(
        action=action,
        actor=actor,
        actor_name=_name(actor),
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
    return AuditEntry.objects.create(
        action=action,
        actor=actor,
        actor_name=_name(actor),
        organisation=organisation,
        conversation_uid=rule.conversation.uid if rule.conversation else "",
        approval_uid=approval.uid if approval else "",
        rule_uid=rule.uid,
        tool=rule.tool,
        reason=reason,
        details={"level": rule.scope, "permission": rule.permission, "when": rule.when, **details},
    )


def about_vault(
    action: AuditEntry.Action,
    vault: Vault,
    *,
    actor: User,
    credential: VaultCredential | None = None,
    **details: Any,
) -> AuditEntry:
    """Names it by id and says for which address it is; never what is in it."""
    if credential is not None:
        details |= {
            "credential": credential.uid,
            "kind": credential.kind,
            "address": credential.url.partition("?")[0],
        }
    return AuditEntry.objects.create(
        action=action,
        actor=actor,
        actor_name=_name(actor),
        organisation_id=vault.organisation_id,
        details={"vault": vault.uid, **details},
    )


def about_shared_file(
    action: AuditEntry.Action, version: SharedVersion, *, actor: User, **details: Any
) -> AuditEntry:
    """Names the new version; what is in it stands in its row."""
    return AuditEntry.objects.create(
        action=action,
        actor=actor,
        actor_name=_name(actor),
        organisation_id=version.organisation_id,
        input_sha256=version.sha256,
        details={
            "agent": version.agent.uid,
            "path": version.path,
            "version": version.number,
            **details,
        },
    )


def about_key(
    action: AuditEntry.Action, key: EnvironmentKey, *, actor: User, **details: Any
) -> AuditEntry:
    """Names it by id, with the environment that it opens."""
    return AuditEntry.objects.create(
        action=action,
        actor=actor,
        actor_name=_name(actor),
        organisation_id=key.environment.organisation_id,
        details={
            "key": key.uid,
            "name": key.name,
            "environment": key.environment.uid,
            **details,
        },
    )


def about_account(
    happening: Happening,
    *,
    actor: User | None,
    organisation: Organisation | None,
    details: Mapping[str, Any],
) -> None:
    """What the floor below tells of people, organisations and their keys."""
    AuditEntry.objects.create(
        action=Action(happening.value),
        actor=actor,
        actor_name=_name(actor),
        organisation=organisation,
        details=dict(details),
    )


def _name(actor: User | None) -> str:
    if actor is None:
        return ""
    full = actor.get_full_name()
    return f"{full} ({actor.username})" if full else actor.username
