"""At most so many at once in this process, and each person once; nobody waits: whoever finds no place is
refused there and then.

For what keeps a request's thread, or a connection to somebody else's server, longer than a page takes.
Work that may wait its turn has lines of its own (`conversations.seats`, `jobs.engine`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Lock

from django.utils.translation import gettext as _

from harness.errors import Busy

RETRY_SECONDS = 3
"""When to come back: what is behind a turnstile is mostly over by then."""
SLOW_SECONDS = 3.0
"""Who is inside for longer is slow."""


class Turnstile:
    def __init__(
        self, places: int, *, slow: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`slow`: further places, to which whoever has been inside for long moves on, so that a few who wait
        for what does not answer keep nobody out who is through at once."""
        self._places = places
        self._slow = slow
        self._clock = clock
        self._inside: dict[Hashable, tuple[float, Hashable]] = {}
        self._lock = Lock()

    @contextmanager
    def place(self, who: Hashable, *, among: Hashable = None) -> Iterator[None]:
        """Held until it is left. Those who are `among` the same take half of all places at most. Raises Busy
        when `who` has one or all are taken."""
        with self._lock:
            if who in self._inside:
                raise _busy(_("Another request of yours does the same at the moment."))
            if not self._has_room(among):
                raise _busy(_("Too many people do the same at the moment."))
            self._inside[who] = self._clock(), among
        try:
            yield
        finally:
            with self._lock:
                self._inside.pop(who, None)

    def _has_room(self, among: Hashable) -> bool:
        before = self._clock() - SLOW_SECONDS
        slow = sum(since <= before for since, _among in self._inside.values())
        if len(self._inside) - min(slow, self._slow) >= self._places:
            return False
        same = sum(each == among for _since, each in self._inside.values())
        return among is None or same < (self._places + self._slow + 1) // 2


def _busy(message: str) -> Busy:
    return Busy(message, hint=_("Send it again in a moment."), retry_after=RETRY_SECONDS)
