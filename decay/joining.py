"""What apps above say of stores: when somebody last used one as a whole, and copies of what fades.

Such an app registers in its `ready()`. The rule itself is `fading`'s part.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from memory.models import MemoryStore

LastUse = Callable[[MemoryStore], datetime | None]
RemoveCopies = Callable[[int, str], None]

_uses: list[LastUse] = []
_copies: list[RemoveCopies] = []


def count_use(last_use: LastUse) -> None:
    """Somebody can read all of a store without anybody noting which memory: none of it fades before."""
    if last_use not in _uses:
        _uses.append(last_use)


def remove_with(remove: RemoveCopies) -> None:
    """Called with the key of the store and the path that a memory had when less was left of it, in that
    transaction. One that is gone is deleted, as Django tells."""
    if remove not in _copies:
        _copies.append(remove)


def last_use_of(store: MemoryStore) -> datetime | None:
    found = [at for at in (last_use(store) for last_use in _uses) if at is not None]
    return max(found, default=None)


def remove_copies(store: int, path: str) -> None:
    for remove in _copies:
        remove(store, path)
