"""A person lends vaults of hers to a conversation. What is in them is `vaults`' matter."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import require_own
from conversations.models import Conversation, SessionVault
from conversations.models.share import WRITING
from harness.errors import Conflict, Invalid
from harness.faults import place
from vaults.models import Vault

MOST_LENT = 50
"""To one conversation."""


def lend_vaults(*, actor: User, conversation: Conversation, vault_uids: Sequence[str]) -> None:
    """Let the conversation draw on these vaults of the actor's; of several that fit the first counts.

    Raises NotFound for a conversation that is not the actor's, Invalid, naming the place, for a vault
    that is not hers in this organisation, is archived or is named twice, and for too many,
    Conflict where others may write in the conversation.
    """
    require_own(actor, conversation)
    if vault_uids and conversation.shares.filter(role__in=list(WRITING)).exists():
        raise Conflict(
            _("Others may write in this conversation, and would have its agent use your vaults."),
            hint=_("Let them only read it first."),
        )
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
        for number, uid in enumerate(vault_uids):
            field = place("vault_ids", number)
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
            SessionVault(conversation=conversation, vault=found[uid], place=number)
            for number, uid in enumerate(vault_uids)
        )
