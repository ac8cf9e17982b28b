"""The end of a process that worked: what runs is brought to a stop, then lines and threads end.

And a promise that it ends: whatever is stuck by then, a tool that never returns, say, or a query that
waits for a lock, is cut off. That is as safe as any other death, because the log is the truth.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading

from django.conf import settings

from jobs.engine import engine
from live.hub import hub

logger = logging.getLogger(__name__)

LAST_SECONDS = 15
"""How long a process has, beside the time for draining, from being told to stop until it is ended."""

ABANDONED_SECONDS = 2
"""How long threads get once the server and all work have ended."""

_promised = threading.Lock()


def promise_end() -> None:
    """Have this process end within AGENTSITE_DRAIN_SECONDS and `LAST_SECONDS`, counted from the first
    call, whatever holds it: without this, an interpreter waits for every thread of a pool."""
    if _promised.acquire(blocking=False):
        seconds = settings.AGENTSITE_DRAIN_SECONDS + LAST_SECONDS
        watch = threading.Timer(seconds, _end, [seconds])
        watch.daemon = True
        watch.start()


def _end(seconds: float) -> None:
    logger.critical("the process is ended: it did not come to its end within %s s", seconds)
    faulthandler.dump_traceback()
    os._exit(1)


def leave_soon() -> None:
    """Have this process end shortly, with nothing left to do: a request that was under way when its
    server stopped leaves a thread waiting for a loop that nobody runs any more."""
    watch = threading.Timer(ABANDONED_SECONDS, _leave)
    watch.daemon = True
    watch.start()


def _leave() -> None:
    logging.shutdown()
    os._exit(0)


def stop_working() -> None:
    """Drain: nothing new begins, running steps get AGENTSITE_DRAIN_SECONDS, claims are given back, and
    another process (or this one's next start) goes on. Blocks; safe to repeat."""
    engine.drain(settings.AGENTSITE_DRAIN_SECONDS)
    hub.stop()
