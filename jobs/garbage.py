"""Garbage collection in processes that serve and work for days.

A collection holds up every answer under way for as long as it looks at what is alive. Looking at all that
was imported takes a hundred milliseconds and more; at what a hundred streaming conversations hold, as much
again.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = 5_000, 4, 25
"""How many new objects lead to a look at the new ones, how many such looks to one at the middle-aged, and
how many of those to a look at everything. With Python's 700, 10, 10, what a wave of deltas makes for a
moment is looked at dozens of times a second, and everything every few seconds. What they cost and save
stands in docs/performance.md."""

MANY = 50
"""Modules: what imports fewer is not worth a collection of its own."""


def collect_seldom() -> None:
    """To be called once, when the process has loaded what it needs and begins its work."""
    gc.set_threshold(*THRESHOLDS)
    keep_loaded()


class Pause:
    """Of collections while a process loads its apps, and seldom ones from then on: nearly all that is made
    then or imported behind it stays, and looking through it over and over takes a fifth of a start."""

    def __init__(self) -> None:
        self._is_ours = False

    def begin(self) -> None:
        if gc.isenabled():
            gc.disable()
            self._is_ours = True

    def end(self) -> None:
        """Nothing where somebody else had switched them off."""
        if self._is_ours:
            self._is_ours = False
            gc.set_threshold(*THRESHOLDS)
            gc.enable()


loading = Pause()


def keep_loaded() -> None:
    """Have no collection look again at what is alive now. Cycles among it are never freed, even once they
    are garbage; so call this seldom."""
    gc.collect()
    gc.freeze()


@contextmanager
def keeping_what_is_imported() -> Iterator[None]:
    """`keep_loaded` after the block if it imported much."""
    before = len(sys.modules)
    try:
        yield
    finally:
        if len(sys.modules) - before >= MANY:
            keep_loaded()
