"""Garbage collection in processes that serve and work for days."""

from __future__ import annotations

import gc


def keep_loaded() -> None:
    """Have no collection look again at what is loaded now: it stays, and a full collection that walks
    it holds up every answer under way by a hundred milliseconds. To be called once, when the process
    is ready."""
    gc.collect()
    gc.freeze()
