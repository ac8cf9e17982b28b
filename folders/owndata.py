"""A person's own folders among what she takes along: their instructions, and with whom they are shared.

Files are named, not held: they are uploads of their givers. Of folders of others she takes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import Folder


def files(user: User) -> Iterator[File]:
    mine = Folder.objects.owned_by(user).select_related("organisation", "default_agent")
    yield File("folders.jsonl", as_lines(map(_told, in_pages(mine))))


def _told(folder: Folder) -> dict[str, Any]:
    members = folder.members.select_related("user").order_by("pk")
    places = folder.places.filter(user=folder.owner_id, conversation__owner=folder.owner_id)
    return {
        "id": folder.uid,
        "organisation": folder.organisation.uid,
        "name": folder.name,
        "instructions": folder.instructions,
        "default_agent": folder.default_agent and folder.default_agent.name,
        "created_at": folder.created_at,
        "members": [{"user": each.user.username, "role": each.role} for each in members],
        "files": [each.file.filename for each in folder.files.there().order_by("pk")],
        "conversations": list(places.order_by("pk").values_list("conversation__uid", flat=True)),
    }
