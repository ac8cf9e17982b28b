"""What was shared with somebody ends with her membership, in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.happenings import Happening
from accounts.models import Organisation, User

from .actions.sharing import end_shares_of


def end_with_membership(
    happening: Happening,
    *,
    actor: User | None,
    organisation: Organisation | None,
    details: Mapping[str, Any],
) -> None:
    """A listener of `accounts.happenings`."""
    if happening is Happening.MEMBER_REMOVED and organisation is not None:
        person = User.objects.filter(uid=details["member"]["id"]).first()
        if person is not None:
            end_shares_of(user=person, organisation=organisation)
