"""Adds to the audit log, in the transaction of what it tells. What is told of a subject is the subject's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.happenings import Happening
from accounts.models import Organisation, User

from .models import AuditEntry

Action = AuditEntry.Action


def write(
    action: AuditEntry.Action, *, actor: User | None, details: Mapping[str, Any], **about: Any
) -> AuditEntry:
    """Add one entry. `about`: further columns of it; `details`: JSON values, never a secret."""
    return AuditEntry.objects.create(
        action=action, actor=actor, actor_name=_name(actor), details=dict(details), **about
    )


def about_setting(
    action: AuditEntry.Action,
    *,
    actor: User,
    organisation_id: int | None,
    conversation_uid: str = "",
    **details: Any,
) -> AuditEntry:
    """What was set up, changed or taken away by who manages it; None: for everybody on the server.

    `details` name things by their public ids and are JSON values; never a secret.
    """
    return write(
        action,
        actor=actor,
        organisation_id=organisation_id,
        conversation_uid=conversation_uid,
        details=details,
    )


def about_account(
    happening: Happening,
    *,
    actor: User | None,
    organisation: Organisation | None,
    details: Mapping[str, Any],
) -> None:
    """What the floor below tells of people, organisations and their keys."""
    write(Action(happening.value), actor=actor, organisation=organisation, details=details)


def _name(actor: User | None) -> str:
    if actor is None:
        return ""
    full = actor.get_full_name()
    return f"{full} ({actor.username})" if full else actor.username
