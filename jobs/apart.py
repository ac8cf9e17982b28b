"""Each of what a sweep finds by itself, so that one that goes wrong keeps no other waiting.

What is left over is the next sweep's. How many a sweep takes, and in which order, it says itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


def each_apart(act: Callable[[T], object], found: Iterable[T], *, told: str) -> int:
    """Call `act`, which has transactions of its own, for each; how many of them went well. What it raises is
    logged, `told` with the one in the place of `%s`."""
    well = 0
    for one in found:
        try:
            act(one)
        except Exception:
            logger.exception(told, one)
        else:
            well += 1
    return well
