"""Names that the REST protocol of `/api` keeps for the system, beside those no workspace shows anyway."""

from __future__ import annotations

from tools_app.confinement import is_reserved

SEED_FOLDERS = frozenset({".agent", ".transcripts", ".tasks", ".team"})


def is_shown(path: str) -> bool:
    """Whether this door lists and opens `path`: no part of it is reserved, at any depth."""
    return not any(part in SEED_FOLDERS or is_reserved(part) for part in path.split("/"))
