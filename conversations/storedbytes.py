"""Where the bytes of uploads lie: in AGENTSITE_FILES_DIR, under the file's id."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from .models.stored_file import PREFIX


def path_of(uid: str) -> Path:
    root: Path = settings.AGENTSITE_FILES_DIR
    return root / uid[-2:] / uid


def is_of_upload(uid: str) -> bool:
    """Whether it is the id of an upload, and not of a conversation."""
    return uid.startswith(f"{PREFIX}_")


def remove_bytes(uid: str) -> None:
    """Nothing if there are none. Raises OSError."""
    path_of(uid).unlink(missing_ok=True)
