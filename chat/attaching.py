"""What forms need in which files are attached. Keeping files is `conversations.actions.attachments`'."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.conf import settings

from conversations.actions.attachments import is_picture
from conversations.models import StoredFile

FILES = "files"
"""The field of forms that names what was uploaded for the message."""


def attaching(files: Iterable[StoredFile], limit: int, *, sees: bool = True) -> dict[str, Any]:
    """What a form needs in which files are attached: those that are, how large one may be, and whether
    the model sees pictures."""
    return {
        "kept": json.dumps(chips(files)),
        "limit": limit,
        "most": settings.AGENTSITE_ATTACHMENTS,
        "blind": not sees,
    }


def chips(files: Iterable[StoredFile]) -> list[dict[str, Any]]:
    return [
        {"id": file.uid, "name": file.filename, "size": file.size, "picture": is_picture(file)}
        for file in files
    ]
