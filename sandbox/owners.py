"""Whose a container is, told so that another process finds out that its owner is gone.

Each process holds the lock of a file of its own for as long as it lives; the system lets go of it however it
ends. What was begun in its name is then for whoever looks: of processes that share the folder, and no others.
A copy of the folder, which nobody locks, tells of nobody: a name says which file it is of.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOKED_AFTER_SECONDS = 600.0
"""So long what a dead process left is looked for: its client may have been about to begin something."""

_own: dict[tuple[int, Path], str] = {}


def own_name(folder: Path) -> str:
    """This process's, which is alive from now on."""
    key = (os.getpid(), folder)
    if key not in _own:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        hidden = folder / f".{secrets.token_hex(8)}"
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        name = f"{os.fstat(descriptor).st_ino:x}-{secrets.token_hex(8)}"
        # Seen by others once it is locked.
        hidden.rename(folder / name)
        _own[key] = name
    return _own[key]


@contextmanager
def dead_owners(folder: Path) -> Iterator[frozenset[str]]:
    """Those that have ended, each looked after by one process at a time, and after a while by none. To be
    left by an exception where what they left could not be ended."""
    held = _locked_in(folder)
    try:
        yield frozenset(path.name for path in held)
        for path, descriptor in held.items():
            noticed = os.fstat(descriptor)
            if not noticed.st_size:
                os.pwrite(descriptor, b"dead", 0)
            elif time.time() - noticed.st_mtime > LOOKED_AFTER_SECONDS:
                path.unlink(missing_ok=True)
    finally:
        for descriptor in held.values():
            os.close(descriptor)


def _locked_in(folder: Path) -> dict[Path, int]:
    held: dict[Path, int] = {}
    for path in sorted(folder.glob("[0-9a-f]*")) if folder.is_dir() else ():
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        try:
            if path.name.startswith(f"{os.fstat(descriptor).st_ino:x}-"):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held[path] = descriptor
                continue
        except BlockingIOError:
            pass
        os.close(descriptor)
    return held
