"""What the audit log is told of vaults."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from audit.models import AuditEntry
from audit.record import write

from .models import Vault, VaultCredential


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
    return write(
        action,
        actor=actor,
        organisation_id=vault.organisation_id,
        details={"vault": vault.uid, **details},
    )
