"""How much a workspace may hold altogether: `AGENTSITE_WORKSPACE_MEGABYTES`, whoever fills it.

Asked under the workspace's lease before files are shown, so that no two of them take the same room.
Commands are held to the same number by their sandbox, which ends the one that overfills
(`sandbox.diskwatch`).
"""

from __future__ import annotations

import time
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import TooLarge
from sandbox.diskwatch import measure
from tools_app.leases import Lease

MB = 1024 * 1024
FRESH_SECONDS = 10.0
"""How long a measurement is believed, together with what was stored since."""
MOST_FILES = 1_000_000


def limit_megabytes(wanted: int) -> int:
    """`wanted`, or the server's number where that is less."""
    most: int = settings.AGENTSITE_WORKSPACE_MEGABYTES
    return min(wanted, most) if most else wanted


def admit(lease: Lease, root: Path, more: int, *, written: bool = False) -> None:
    """Take `more` bytes of the workspace at `root` for its lease's holder; `written`: they lie on disk
    already, under another name. Raises `TooLarge`, saying what to do, when they do not fit.

    What was stored since the last measurement is told from holder to holder with the lease, over all
    processes.
    """
    limit = settings.AGENTSITE_WORKSPACE_MEGABYTES * MB
    if not limit:
        return
    size, at = _noted(lease)
    total = size + more
    # A clock that was set back makes a measurement old, never young.
    if not 0 <= time.time() - at <= FRESH_SECONDS or total > limit:
        # What was removed meanwhile counts at once: nobody is refused on an old measurement.
        size, at = measure([root], MOST_FILES).size, time.time()
        total = size if written else size + more
    if total > limit:
        raise _full(total - more, limit)
    lease.keep_note(f"{total} {at:.3f}")


def require_room(root: Path, more: int) -> None:
    """Raise `TooLarge` for what cannot fit into the workspace at `root` however little it holds: the
    room itself is taken with `admit`."""
    limit = settings.AGENTSITE_WORKSPACE_MEGABYTES * MB
    if limit and more > limit:
        raise _full(measure([root], MOST_FILES).size - more, limit)


def _noted(lease: Lease) -> tuple[int, float]:
    size, _space, at = lease.note().partition(" ")
    try:
        return int(size), float(at)
    except ValueError:
        return 0, 0.0


def _full(held: int, limit: int) -> TooLarge:
    return TooLarge(
        _("The workspace is full: it holds %(held)s of %(limit)s MB.")
        % {"held": f"{max(held, 0) / MB:,.1f}", "limit": f"{limit / MB:,.0f}"},
        field="file",
        hint=_("Remove files that are no longer needed, or store less."),
    )
