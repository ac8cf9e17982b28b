"""Which token a conversation's request to an address carries: read from tables at each request.

So what is replaced, archived or deleted holds for the very next request. The token leaves here for the
tool's request alone; no prompt, event, file or environment of a command gets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from harness.errors import AgentError, ToolError
from jobs.engine import engine
from reading.hostnames import split_address
from tools_app.web.credentials import covers, one_spelling
from vaults.auth import details_of, secrets_of
from vaults.models import Vault, VaultCredential
from vaults.oauth import RefreshFailed, fresh_token

from .ancestry import root_conversation
from .models import Conversation, SessionVault

USED_TO = timedelta(minutes=1)
"""How exactly it is kept when a credential was last used."""


@dataclass(frozen=True, slots=True)
class Found:
    credential_id: int
    token: str = field(repr=False)
    is_over: bool = False
    """Its time is up, and there is a way to have another."""


class ConversationCredentials:
    """See `tools_app.web.credentials.Credentials`, for one conversation."""

    def __init__(self, conversation_id: int) -> None:
        self._conversation_id = conversation_id

    async def bearer_for(self, address: str) -> str:
        try:
            found = await engine.in_database(find_bearer, self._conversation_id, address)
            if found is None:
                return ""
            return await fresh_token(found.credential_id) if found.is_over else found.token
        except RefreshFailed as problem:
            raise ToolError(
                f"It was not fetched: {problem}.",
                hint="Tell the person to store a new token in the vault.",
            ) from None
        except AgentError as problem:
            raise ToolError(f"It was not fetched: {problem.message}", hint=problem.hint) from None


def find_bearer(conversation_id: int, address: str) -> Found | None:
    """Of the first vault that has a credential for `address`, the one that is nearest to it.

    In a thread with tables. Raises NotConfigured if the secret cannot be opened.
    """
    return found_in(_credential_for(conversation_id, address))


def found_in(row: VaultCredential | None) -> Found | None:
    if row is None:
        return None
    now = timezone.now()
    VaultCredential.objects.filter(
        Q(last_used_at=None) | Q(last_used_at__lt=now - USED_TO), pk=row.pk
    ).update(last_used_at=now)
    details = details_of(row)
    is_over = details.refresh is not None and details.is_over()
    return Found(row.pk, secrets_of(row).token, is_over)


def _credential_for(conversation_id: int, address: str) -> VaultCredential | None:
    # Those below the one that a person began share its vaults.
    root = root_conversation(
        Conversation.objects.select_related("owner", "parent").get(pk=conversation_id)
    )
    lent = SessionVault.objects.filter(
        conversation=root,
        vault__in=Vault.objects.visible_to(root.owner).filter(organisation=root.organisation_id),
    )
    return nearest(dict(lent.values_list("vault_id", "place")), address)


def nearest(places: Mapping[int, int], address: str) -> VaultCredential | None:
    if not places:
        return None
    parts = split_address(one_spelling(address))
    fitting = [
        row
        for row in VaultCredential.objects.in_force().filter(
            vault__in=places, key__startswith=f"{parts.scheme}://{parts.netloc}"
        )
        if covers(row.key, address)
    ]
    return min(fitting, key=lambda row: (places[row.vault_id], -len(row.key)), default=None)
