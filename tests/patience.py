"""How long tests wait for what has to come about: so long that only a hang outlasts it.

It ends a wait that would never end and measures nothing: what has come about is never late.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 120.0
"""Seconds, on a machine that is busy with other work or was paused."""
SHORTEST, LONGEST = 0.01, 0.1
"""Seconds between two looks. What has taken long already is looked at less often, and so is what takes long
to look at: looks would take the processor from what they wait for."""


def until(
    holds: Callable[[], Any],
    seconds: float = PATIENCE,
    explain: Callable[[], str] = str,
    longest: float = LONGEST,
) -> Any:
    """Wait for something that others bring about; its value, or an assertion error. What passes by is looked
    for as often as it lasts: `longest`."""
    began, used = time.monotonic(), time.thread_time()
    while not (value := holds()):
        waited, look = time.monotonic() - began, time.thread_time() - used
        assert waited < seconds, f"it did not come about in time\n{explain()}"
        time.sleep(min(max(SHORTEST, waited / 10, 4 * look), longest))
        used = time.thread_time()
    return value
