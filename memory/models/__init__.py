"""Stores, the memories in them, and the versions that say how each came to be what it is."""

from .memory import Kind, Memory
from .store import MemoryStore
from .version import AuthorKind, MemoryVersion

__all__ = ["AuthorKind", "Kind", "Memory", "MemoryStore", "MemoryVersion"]
