"""A migrated, empty database for every site that tests start: made once a process, copied after that.

Migrating takes seconds of a processor and is the same each time; what a first start does is tested in
`tests/agentsite/test_up.py`, which copies nothing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from django.conf import settings
from django.db import connection

_VARIABLE = "TESTS_MIGRATED_DATABASE"
"""Where the copy lies; processes that a test starts learn it from here."""


def keep() -> None:
    """Keep a copy of this process's database, which was migrated just now and holds no rows of a test."""
    if connection.vendor != "sqlite":
        return
    kept = Path(settings.AGENTSITE_DATA_DIR) / "migrated.sqlite3"
    source = sqlite3.connect(connection.settings_dict["NAME"])
    target = sqlite3.connect(kept)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
    os.environ[_VARIABLE] = str(kept)


def place(directory: Path) -> None:
    """Put a copy where a site with this data directory looks for its database, if it has none yet."""
    copy(directory / "db.sqlite3")


def copy(place: Path) -> None:
    """Make this file a migrated, empty database, unless it is there or nobody kept one."""
    kept = os.environ.get(_VARIABLE)
    if kept is None or place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kept, place)
