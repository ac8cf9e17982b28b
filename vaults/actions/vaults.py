"""A person makes, names, archives and deletes vaults, and lends them to her conversations.

A vault is its owner's alone: for everybody else, managers and staff included, there is none. What lies in
it is `actions.credentials`' part.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.persons import hold_place
from audit.record import Action
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from vaults.auditing import about_vault
from vaults.models import NAME_LIMIT, Vault
from webhooks import outbox
from wire.metadata import check_metadata
from wire.naming import one_line

MOST_VAULTS = 100
"""In force, of one person and her service accounts in one organisation."""


def create_vault(
    *,
    actor: User,
    organisation: Organisation,
    display_name: str,
    metadata: Mapping[str, str] | None = None,
) -> Vault:
    """Raises NotFound for a stranger to the organisation, Invalid, TooLarge and LimitReached."""
    if not (
        actor.is_active
        and Organisation.objects.visible_to(actor).filter(pk=organisation.pk).exists()
    ):
        raise NotFound(_("There is no such organisation."))
    name = clean_name(display_name)
    noted = check_metadata(metadata or {})
    with transaction.atomic():
        # The lock keeps two at once from being one too many.
        hers = hold_place(actor, organisation)
        held = Vault.objects.in_force().filter(owner__in=hers, organisation=organisation)
        if held.count() >= MOST_VAULTS:
            raise LimitReached(
                _("A person and her service accounts may have %(most)d vaults in an organisation.")
                % {"most": MOST_VAULTS},
                hint=_("Archive or delete one."),
            )
        vault = Vault.objects.create(
            organisation=organisation, owner=actor, display_name=name, metadata=noted
        )
        about_vault(Action.VAULT_MADE, vault, actor=actor)
        outbox.announce(organisation.pk, "vault.created", subject=vault.uid)
    return vault


def change_vault(
    *,
    actor: User,
    vault: Vault,
    display_name: str | None = None,
    metadata: Mapping[str, str | None] | None = None,
) -> Vault:
    """None: as it was. `metadata` merges; None as a value takes the name away. Raises NotFound,
    Conflict once it is archived, Invalid and TooLarge."""
    with transaction.atomic():
        current = lock_vault(actor, vault)
        require_in_force(current)
        if display_name is not None:
            current.display_name = clean_name(display_name)
        if metadata is not None:
            current.metadata = merged(current.metadata, metadata)
        current.save(update_fields=["display_name", "metadata", "updated_at"])
    return current


def archive_vault(*, actor: User, vault: Vault) -> Vault:
    """For good: its secrets are forgotten now, its records stay. Again changes nothing."""
    with transaction.atomic():
        current = lock_vault(actor, vault)
        if current.archived_at is None:
            _archive(current, actor)
    return current


def archive_vaults_of(*, actor: User, account: User, organisation: Organisation) -> None:
    """Those of a service account that the actor removes: their secrets would serve nobody. In the
    transaction of the removal, which has checked that she may."""
    mine = Vault.objects.in_force().filter(owner=account, organisation=organisation)
    for vault in mine.select_for_update(of=("self",)).order_by("pk"):
        _archive(vault, actor)


def delete_vault(*, actor: User, vault: Vault) -> None:
    """With everything in it, at once and also for conversations it was lent to."""
    with transaction.atomic():
        current = lock_vault(actor, vault)
        uids = list(current.credentials.values_list("uid", flat=True))
        about_vault(Action.VAULT_DELETED, current, actor=actor, credentials=uids)
        outbox.announce(current.organisation_id, "vault.deleted", subject=current.uid)
        current.delete()


def lock_vault(actor: User, vault: Vault) -> Vault:
    """The row as it is now, held until the transaction ends; NotFound unless it is the actor's."""
    mine = Vault.objects.visible_to(actor).filter(pk=vault.pk)
    current = mine.select_for_update(of=("self",)).first()
    if current is None:
        raise NotFound(_("There is no such vault."))
    return current


def require_in_force(vault: Vault) -> None:
    if vault.archived_at is not None:
        raise Conflict(
            _("This vault is archived and changes no more."), hint=_("Create a new one.")
        )


def clean_name(name: str, *, field: str = "display_name", least: int = 1) -> str:
    name = one_line(name)
    if not least <= len(name) <= NAME_LIMIT:
        raise Invalid(
            _("A name has %(least)d to %(most)d characters.")
            % {"least": least, "most": NAME_LIMIT},
            field=field,
            hint=_("Type another."),
        )
    return name


def _archive(vault: Vault, actor: User) -> None:
    vault.archived_at = now = timezone.now()
    vault.save(update_fields=["archived_at", "updated_at"])
    held = vault.credentials.filter(archived_at=None)
    uids = list(held.values_list("uid", flat=True))
    held.update(sealed="", archived_at=now, updated_at=now)
    about_vault(Action.VAULT_ARCHIVED, vault, actor=actor, credentials=uids)
    outbox.announce(vault.organisation_id, "vault.archived", subject=vault.uid)
    for uid in uids:
        outbox.announce(
            vault.organisation_id, "vault_credential.archived", subject=uid, vault_id=vault.uid
        )


def merged(before: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    kept = {**before, **patch}
    return check_metadata({key: value for key, value in kept.items() if value is not None})
