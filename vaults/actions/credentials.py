"""Secrets go into a vault, are replaced, archived and deleted there. None ever comes out.

Only the vault's owner does any of it. What a change does holds from the next use on, also in
conversations that run.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts.models import User
from audit.record import Action
from harness.errors import Conflict, LimitReached, NotFound
from vaults.auditing import about_vault
from vaults.auth import ChangedAuth, NewAuth, changed, check_new, sealed
from vaults.models import Vault, VaultCredential
from webhooks import outbox
from wire.metadata import check_metadata

from .vaults import clean_name, lock_vault, merged, require_in_force

MOST_CREDENTIALS = 20
"""In force, of one vault."""


@sensitive_variables("auth")
def create_credential(
    *,
    actor: User,
    vault: Vault,
    auth: NewAuth,
    display_name: str = "",
    metadata: Mapping[str, str] | None = None,
) -> VaultCredential:
    """Raises NotFound, Conflict for an archived vault and for a second credential for one address,
    LimitReached, Invalid and TooLarge naming the field, and NotConfigured where nothing can be sealed.
    """
    auth, key = check_new(auth)
    name = clean_name(display_name, least=0)
    noted = check_metadata(metadata or {})
    text = sealed(auth.secrets)
    with transaction.atomic():
        held = lock_vault(actor, vault)
        require_in_force(held)
        in_force = held.credentials.filter(archived_at=None)
        if in_force.filter(key=key).exists():
            raise Conflict(
                _("This vault has a credential for this address already."),
                hint=_("Replace its secret, or archive it first."),
            )
        if in_force.count() >= MOST_CREDENTIALS:
            raise LimitReached(
                _("A vault holds %(most)d credentials.") % {"most": MOST_CREDENTIALS},
                hint=_("Archive one, or make another vault."),
            )
        row = VaultCredential.objects.create(
            vault=held,
            display_name=name,
            kind=auth.kind,
            url=auth.url,
            key=key,
            details=auth.details.model_dump(mode="json"),
            sealed=text,
            metadata=noted,
        )
        _record(Action.SECRET_STORED, "vault_credential.created", held, row, actor)
    return row


@sensitive_variables("auth")
def change_credential(
    *,
    actor: User,
    credential: VaultCredential,
    auth: ChangedAuth | None = None,
    display_name: str | None = None,
    metadata: Mapping[str, str | None] | None = None,
) -> VaultCredential:
    """None: as it was. Raises NotFound, Conflict once it is archived, and as `create_credential`."""
    with transaction.atomic():
        vault, row = _lock(actor, credential)
        require_in_force(vault)
        if row.archived_at is not None:
            raise Conflict(
                _("This credential is archived and changes no more."), hint=_("Store a new one.")
            )
        if display_name is not None:
            row.display_name = clean_name(display_name, least=0)
        if metadata is not None:
            row.metadata = merged(row.metadata, metadata)
        if auth is not None:
            secrets, details = changed(row, auth)
            row.sealed, row.details = sealed(secrets), details.model_dump(mode="json")
            about_vault(Action.SECRET_REPLACED, vault, actor=actor, credential=row)
        row.save(update_fields=["display_name", "metadata", "sealed", "details", "updated_at"])
    return row


def archive_credential(*, actor: User, credential: VaultCredential) -> VaultCredential:
    """For good: the secret is forgotten now, the record stays. Again changes nothing."""
    with transaction.atomic():
        vault, row = _lock(actor, credential)
        if row.archived_at is None:
            row.archived_at, row.sealed = timezone.now(), ""
            row.save(update_fields=["archived_at", "sealed", "updated_at"])
            _record(Action.SECRET_ARCHIVED, "vault_credential.archived", vault, row, actor)
    return row


def delete_credential(*, actor: User, credential: VaultCredential) -> None:
    with transaction.atomic():
        vault, row = _lock(actor, credential)
        _record(Action.SECRET_DELETED, "vault_credential.deleted", vault, row, actor)
        row.delete()


def _lock(actor: User, credential: VaultCredential) -> tuple[Vault, VaultCredential]:
    """The vault first, as everywhere, then what lies in it."""
    vault = lock_vault(actor, credential.vault)
    row = vault.credentials.select_for_update().filter(pk=credential.pk).first()
    if row is None:
        raise NotFound(_("There is no such credential."))
    return vault, row


def _record(action: Action, webhook: str, vault: Vault, row: VaultCredential, actor: User) -> None:
    about_vault(action, vault, actor=actor, credential=row)
    outbox.announce(vault.organisation_id, webhook, subject=row.uid, vault_id=vault.uid)
