"""What a service account leaves behind that only it could reach ends with it: its uploads and its vaults.

They would go on counting in its maker's limits, and nobody could remove them. What its agents do is
`departures`' part; what people leave behind waits for their return.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.happenings import Happening
from accounts.models import Organisation, User
from vaults.actions.vaults import archive_vaults_of

from .actions.stored_files import expire_files_of


def end_with_its_account(
    happening: Happening,
    *,
    actor: User | None,
    organisation: Organisation | None,
    details: Mapping[str, Any],
) -> None:
    """A listener of `accounts.happenings`, in the transaction of the removal."""
    if happening is not Happening.SERVICE_REMOVED or actor is None or organisation is None:
        return
    account = User.objects.get(uid=details["member"]["id"])
    expire_files_of(account=account, organisation=organisation)
    archive_vaults_of(actor=actor, account=account, organisation=organisation)
