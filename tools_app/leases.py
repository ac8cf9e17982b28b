"""The lease to change one workspace: a single holder at a time, over all processes of a host.

A holder that dies loses it at once, one that hangs after `LEASE_SECONDS`; whoever comes then takes over.
A late writer finds that out before anything of its work is shown (`Lease.committing`). What is written,
and where, is the workspace's affair.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.utils.translation import gettext as _

from harness.errors import Conflict

LEASE_SECONDS = 60.0
"""How long one change may take before its holder is taken for hung; `renew` begins it anew."""
WAIT_SECONDS = 10.0
"""How long a change waits for another change of the same workspace."""

FOLDER = ".leases"
"""Beside the workspaces, where no tool and no command reaches."""
_NOTE_LIMIT = 100


class Lease:
    """One holder's. The file that is open is the token: whoever takes over puts another in its place."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def renew(self) -> None:
        os.utime(self._descriptor)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """What is shown to others in here is shown by the holder alone. Raises `Conflict`, letting
        nothing happen, when somebody took over."""
        with _guarded(self._path):
            if not _is_at(self._path, self._descriptor):
                raise Conflict(
                    _("The change took too long, and somebody else changes the workspace by now."),
                    hint=_("Nothing was written. Look at the file again, then try again."),
                )
            yield

    def note(self) -> str:
        """What the last holder, of any process, left with `keep_note`; empty after a take-over."""
        return os.pread(self._descriptor, _NOTE_LIMIT, 0).decode("ascii", errors="replace")

    def keep_note(self, text: str) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode("ascii"), 0)

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def leased(root: Path) -> Iterator[Lease]:
    """Hold the lease of the workspace at `root`. Not re-entrant. Raises `Conflict` after
    `WAIT_SECONDS`."""
    folder = root.parent / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    lease = _awaited(folder / root.name)
    try:
        yield lease
    finally:
        lease.close()


def forget(root: Path) -> None:
    """The workspace is gone, and with it the lease; who still holds one commits nothing."""
    path = root.parent / FOLDER / root.name
    for each in (path, _guard_of(path)):
        each.unlink(missing_ok=True)


def _awaited(path: Path) -> Lease:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        with _guarded(path):
            lease = _free(path) or _overdue(path)
            if lease is not None:
                lease.renew()
                return lease
        _wait(deadline)


def _wait(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Conflict(
            _("The workspace is being changed by somebody else."),
            hint=_("Try again in a moment."),
        )
    time.sleep(0.01)


def _free(path: Path) -> Lease | None:
    """The lease, if nobody holds it. The system gives it back when its holder dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if _locked(descriptor) and _is_at(path, descriptor):
        return Lease(path, descriptor)
    os.close(descriptor)
    return None


def _overdue(path: Path) -> Lease | None:
    """The lease, taken from a holder that has had it for too long."""
    if time.time() - path.stat().st_mtime <= LEASE_SECONDS:
        return None
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)  # of somebody who died at this very place
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(fresh, flags, 0o600)
    _locked(descriptor)
    fresh.replace(path)
    return Lease(path, descriptor)


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    """For the moments in which a lease changes hands or a holder shows its work."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(_guard_of(path), flags, 0o600)
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        while not _locked(descriptor):
            _wait(deadline)
        yield
    finally:
        os.close(descriptor)


def _guard_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.guard")


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))
