"""What each host that works for this server finds out about itself, where every process can read it.

A report ends by itself, and the process that made it says it again for as long as it lives: a host that is
gone says nothing any more. What is looked for, and what follows from it, is of those who report.
"""

from __future__ import annotations

import socket
from functools import partial
from typing import Any

from django.core.cache import cache

from jobs.engine import engine

SECONDS = 300.0
"""How long a report is believed."""
_latest: dict[str, object] = {}
"""By subject, a mark of what this process told last: what that replaced is not said again."""
AGAIN = 60.0
"""Seconds until it is said again."""


async def report(subject: str, found: Any) -> None:
    """Tell what was found here, in place of what this host told before, until this process ends or finds
    something else."""
    mark = _latest[subject] = object()
    await _say(subject, found, mark)


async def _say(subject: str, found: Any, mark: object) -> None:
    if _latest[subject] is not mark:
        return
    engine.later(AGAIN, partial(engine.submit, partial(_say, subject, found, mark)))
    await engine.in_database(keep, subject, socket.gethostname(), found)


def keep(subject: str, host: str, found: Any) -> None:
    """Once, in place of what the host told before. What is found must be picklable."""
    cache.set(f"{subject}:{host}", (host, found), SECONDS)
    hosts = sorted({*reports(subject), host})
    # Of two that do this at once one may be left out, until it says so again.
    if hosts != cache.get(subject):
        cache.set(subject, hosts, timeout=None)


def reports(subject: str) -> dict[str, Any]:
    """By host, in the order of their names."""
    hosts = cache.get(subject) or ()
    return dict(sorted(cache.get_many([f"{subject}:{host}" for host in hosts]).values()))
