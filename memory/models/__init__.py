"""Stores, the memories in them, the versions that say how each came to be what it is, and their vectors."""

from .memory import Kind, Memory
from .store import MemoryStore
from .vector import EmbeddingClaim, EmbeddingScale, MemoryVector, Vector
from .version import AuthorKind, MemoryVersion

__all__ = [
    "AuthorKind",
    "EmbeddingClaim",
    "EmbeddingScale",
    "Kind",
    "Memory",
    "MemoryStore",
    "MemoryVector",
    "MemoryVersion",
    "Vector",
]
