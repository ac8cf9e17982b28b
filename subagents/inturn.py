"""Where one writes at a time (SQLite), one begin or end of a subagent is written at a time by a process.

Fifty asked for in one reply would else compete for the database: SQLite has them try again and again, in no
order, until runs that only want to append find it locked for too long. Here they wait in line instead. What
takes long, copying files, is done before. Who may begin is the tree's lock to say, as ever; where rows are
locked one by one, that is the only one to wait for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from django.db import connection, transaction

_LINE = threading.Lock()


@contextmanager
def in_turn() -> Iterator[None]:
    """A transaction. Not to be entered from within another one, which would be held while this waits."""
    with _LINE if connection.vendor == "sqlite" else nullcontext(), transaction.atomic():
        yield
