"""Starts a job by name, after the transaction that asked for it: here, or in a worker.

Here on one machine; where a broker is configured, it takes the engine's place and nothing else changes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from . import here
from .engine import engine
from .registry import find


def dispatch(name: str, *, delay: float = 0.0, **arguments: Any) -> None:
    """Have the job run soon (or `delay` seconds later), once the current transaction is committed.

    At most a hint, and never an error of the caller's: a process that dies first forgets it, a broker
    that is down never hears of it. Whoever needs certainty keeps a row that a sweep finds. Raises
    `LookupError` for an unknown name at once.
    """
    find(name)
    transaction.on_commit(partial(start, name, arguments, delay))


def start(name: str, arguments: dict[str, Any], delay: float) -> None:
    """What the transaction's end does."""
    if settings.AGENTSITE_BROKER_URL:
        from . import broker  # noqa: PLC0415 - heavy, imported on first use

        broker.send(name, arguments, delay)
    elif delay:
        engine.later(delay, lambda: here.begin(name, arguments))
    else:
        here.begin(name, arguments)
