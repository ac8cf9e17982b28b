"""That a person has vaults, and for which addresses, among what she takes along. No secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import Vault


def files(user: User) -> Iterator[File]:
    mine = Vault.objects.visible_to(user).select_related("organisation")
    yield File("vaults.jsonl", as_lines(map(_told, in_pages(mine))))


def _told(vault: Vault) -> dict[str, Any]:
    return {
        "id": vault.uid,
        "organisation": vault.organisation.uid,
        "name": vault.display_name,
        "created_at": vault.created_at,
        "archived_at": vault.archived_at,
        "credentials": [
            {"id": each.uid, "name": each.display_name, "kind": each.kind, "url": each.url}
            for each in vault.credentials.order_by("pk")
        ],
    }
