"""Garbage collection in processes that serve and work for days.

A collection holds up every answer under way for as long as it looks at what is alive: at all that was
imported a hundred milliseconds and more, at what a hundred streaming conversations hold as much again.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = 5_000, 4, 25
"""New objects that make a look at the new ones; such looks that make one at the middle-aged; such looks
that make one at all. With Python's 700, 10, 10, what a wave of deltas makes for a moment is looked at
dozens of times a second, and everything every few seconds. Chosen by `make bench` (docs/performance.md)."""

MANY = 50
"""Modules: what imports fewer is not worth a collection of its own."""


def collect_seldom() -> None:
    """To be called once, when the process has loaded what it needs and begins its work."""
    gc.set_threshold(*THRESHOLDS)
    keep_loaded()


def keep_loaded() -> None:
    """Have no collection look again at what is alive now. What of it is garbage one day stays as well,
    where it points at itself: so not again and again."""
    gc.collect()
    gc.freeze()


@contextmanager
def keeping_what_is_imported() -> Iterator[None]:
    """`keep_loaded` after the block if it imported much."""
    before = len(sys.modules)
    yield
    if len(sys.modules) - before >= MANY:
        keep_loaded()
