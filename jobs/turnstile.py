"""At most so many at once in this process, and each person once; nobody waits: whoever finds no place is
refused there and then.

For what keeps a request's thread, or a connection to somebody else's server, longer than a page takes.
Work that may wait its turn has lines of its own (`conversations.seats`, `jobs.engine`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock

from django.utils.translation import gettext as _

from harness.errors import Busy

RETRY_SECONDS = 3
"""When to come back: what is behind a turnstile is mostly over by then."""


class Turnstile:
    def __init__(self, places: int) -> None:
        self._places = places
        self._inside: set[Hashable] = set()
        self._lock = Lock()

    @contextmanager
    def place(self, who: Hashable) -> Iterator[None]:
        """Held until it is left. Raises Busy when `who` has one or all are taken."""
        with self._lock:
            if who in self._inside:
                raise _busy(_("Another request of yours does the same at the moment."))
            if len(self._inside) >= self._places:
                raise _busy(_("Too many people do the same at the moment."))
            self._inside.add(who)
        try:
            yield
        finally:
            with self._lock:
                self._inside.discard(who)


def _busy(message: str) -> Busy:
    return Busy(message, hint=_("Send it again in a moment."), retry_after=RETRY_SECONDS)
