"""Stores, the memories in them, the versions that say how each came to be what it is, and their vectors."""

from .memory import Kind, Memory
from .store import MemoryStore
from .vector import EmbeddingClaim, MemoryVector, Vector
from .version import AuthorKind, MemoryVersion

__all__ = [
    "AuthorKind",
    "EmbeddingClaim",
    "Kind",
    "Memory",
    "MemoryStore",
    "MemoryVector",
    "MemoryVersion",
    "Vector",
]
