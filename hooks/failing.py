"""That a hook gave no answer."""

from __future__ import annotations


class Failed(Exception):
    """The words are for people."""
