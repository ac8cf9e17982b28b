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
"""Seconds between two looks. What has taken long already is looked at less often: on a busy machine, looks
would take the processor from what they wait for."""


def until(
    holds: Callable[[], Any],
    seconds: float = PATIENCE,
    explain: Callable[[], str] = str,
    longest: float = LONGEST,
) -> Any:
    """Wait for something that others bring about; its value, or an assertion error. What passes by is looked
    for as often as it lasts: `longest`."""
    began = time.monotonic()
    while not (value := holds()):
        waited = time.monotonic() - began
        assert waited < seconds, f"it did not come about in time\n{explain()}"
        time.sleep(min(max(SHORTEST, waited / 10), longest))
    return value
