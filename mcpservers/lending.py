"""Which credential a conversation would draw on that is about to be lent vaults: `conversations.bearers`
before it is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from accounts.models import User
from conversations.bearers import Found, found_in, nearest
from vaults.models import Vault


def find_bearer_of(
    owner: User, organisation_id: int, vault_uids: Sequence[str], address: str
) -> Found | None:
    """As `find_bearer`. Vaults that are not hers there are passed over."""
    mine = Vault.objects.visible_to(owner).filter(organisation=organisation_id)
    known = dict(mine.filter(uid__in=vault_uids).values_list("uid", "pk"))
    places = {known[uid]: place for place, uid in enumerate(vault_uids) if uid in known}
    return found_in(nearest(places, address))
