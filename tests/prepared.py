"""A migrated, empty database for all processes and sites of a test run: made once, copied after that.

Making all tables takes seconds of a processor and is the same each time; what a first start does is tested in
`tests/agentsite/test_up.py`, which copies nothing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection

_VARIABLE = "TESTS_MIGRATED_DATABASE"
"""Where the copy lies; processes that a test starts learn it from here."""


@contextmanager
def shared(directory: Path) -> Iterator[bool]:
    """Whether this process's database is there already, copied from the process that made it.

    The first of the processes that meet in `directory` is told that it is not, and the others wait until it
    has called `keep`. `directory` is theirs alone.
    """
    os.environ.setdefault(_VARIABLE, str(directory / "migrated.sqlite3"))
    if connection.vendor != "sqlite":
        yield False
        return
    with (directory / "migrating").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield copy(Path(settings.DATABASES["default"]["TEST"]["NAME"]))


def keep() -> None:
    """Keep a copy of this process's database, which was migrated just now and holds no rows of a test."""
    kept = Path(os.environ[_VARIABLE])
    if connection.vendor != "sqlite" or kept.exists():
        return
    source = sqlite3.connect(connection.settings_dict["NAME"])
    target = sqlite3.connect(kept)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()


def place(directory: Path) -> None:
    """Put a copy where a site with this data directory looks for its database, if it has none yet."""
    copy(directory / "db.sqlite3")


def copy(place: Path) -> bool:
    """Make this file a migrated, empty database, unless it is there. False: nobody has kept one."""
    kept = os.environ.get(_VARIABLE)
    if not place.exists():
        if kept is None or not Path(kept).exists():
            return False
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kept, place)
    return True
