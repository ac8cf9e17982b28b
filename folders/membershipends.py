"""Who leaves an organisation leaves its folders for good, in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.happenings import Happening
from accounts.models import Organisation, User

from .models import FolderMember, FolderPlace


def end_with_membership(
    happening: Happening,
    *,
    actor: User | None,
    organisation: Organisation | None,
    details: Mapping[str, Any],
) -> None:
    """A listener of `accounts.happenings`."""
    if happening is not Happening.MEMBER_REMOVED or organisation is None:
        return
    gone = {"user__uid": details["member"]["id"]}
    shared = FolderMember.objects.filter(folder__organisation=organisation, **gone)
    folders = list(shared.values_list("folder", flat=True))
    FolderPlace.objects.filter(folder__in=folders, **gone).delete()
    shared.delete()
