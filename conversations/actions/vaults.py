"""A person makes, names, archives and deletes vaults, and lends them to her conversations.

A vault is its owner's alone: for everybody else, managers and staff included, there is none. What lies in
it is `actions.credentials`' part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from conversations.actions.metadata import check_metadata
from conversations.actions.naming import one_line
from conversations.audit import Action, about_vault
from conversations.models import Conversation, SessionVault, Vault
from conversations.models.vault import NAME_LIMIT
from conversations.webhooks import outbox
from harness.errors import Conflict, Invalid, LimitReached, NotFound

MOST_VAULTS = 100
"""In force, of one person in one organisation."""
MOST_LENT = 50
"""To one conversation."""


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
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
        held = Vault.objects.in_force().filter(owner=actor, organisation=organisation)
        if held.count() >= MOST_VAULTS:
            raise LimitReached(
                _("A person may have %(most)d vaults in an organisation.") % {"most": MOST_VAULTS},
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
            current.archived_at = now = timezone.now()
            current.save(update_fields=["archived_at", "updated_at"])
            held = current.credentials.filter(archived_at=None)
            uids = list(held.values_list("uid", flat=True))
            held.update(sealed="", archived_at=now, updated_at=now)
            about_vault(Action.VAULT_ARCHIVED, current, actor=actor, credentials=uids)
            outbox.announce(current.organisation_id, "vault.archived", subject=current.uid)
            for uid in uids:
                outbox.announce(
                    current.organisation_id,
                    "vault_credential.archived",
                    subject=uid,
                    vault_id=current.uid,
                )
    return current


def delete_vault(*, actor: User, vault: Vault) -> None:
    """With everything in it, at once and also for conversations it was lent to."""
    with transaction.atomic():
        current = lock_vault(actor, vault)
        uids = list(current.credentials.values_list("uid", flat=True))
        about_vault(Action.VAULT_DELETED, current, actor=actor, credentials=uids)
        outbox.announce(current.organisation_id, "vault.deleted", subject=current.uid)
        current.delete()


def lend_vaults(*, actor: User, conversation: Conversation, vault_uids: Sequence[str]) -> None:
    """Let the conversation draw on these vaults of the actor's; of several that fit the first counts.

    Raises NotFound for a conversation that is not the actor's, Invalid, naming the place, for a vault
    that is not hers in this organisation, is archived or is named twice, and for too many.
    """
    if not Conversation.objects.visible_to(actor).filter(pk=conversation.pk).exists():
        raise NotFound(_("There is no such conversation."))
    if len(vault_uids) > MOST_LENT:
        raise Invalid(
            _("A session has %(most)d vaults at most.") % {"most": MOST_LENT},
            field="vault_ids",
            hint=_("Name fewer."),
        )
    mine = Vault.objects.visible_to(actor).filter(
        organisation=conversation.organisation_id, uid__in=vault_uids
    )
    with transaction.atomic():
        found = {vault.uid: vault for vault in mine.select_for_update(of=("self",), no_key=True)}
        for place, uid in enumerate(vault_uids):
            field = f"vault_ids.{place}"
            if uid not in found:
                raise Invalid(
                    _("There is no vault “%(uid)s”.") % {"uid": uid[:60]},
                    field=field,
                    hint=_("GET /v1/vaults lists yours."),
                )
            if found[uid].archived_at is not None:
                raise Invalid(
                    _("This vault is archived."), field=field, hint=_("Name one in force.")
                )
        if len(found) < len(vault_uids):
            raise Invalid(
                _("A vault is named twice."), field="vault_ids", hint=_("Name each once.")
            )
        SessionVault.objects.bulk_create(
            SessionVault(conversation=conversation, vault=found[uid], place=place)
            for place, uid in enumerate(vault_uids)
        )


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


def merged(before: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    kept = {**before, **patch}
    return check_metadata({key: value for key, value in kept.items() if value is not None})
