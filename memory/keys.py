"""When two memories say the same: by the key that was given, or by their words alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .models import Memory, MemoryStore
from .paths import as_part
from .retrieval.question import FUNCTION_WORDS
from .retrieval.words import plain, terms_of

ALIKE = 0.7
"""Share of their terms that two texts have in common when they say the same."""
KEY_LIMIT = 120


def clean_key(key: str) -> str:
    """One spelling of a key: lower case, hyphens between words."""
    return as_part(key, KEY_LIMIT) if key.strip() else ""


@dataclass(frozen=True, slots=True)
class Alike:
    memory: Memory
    same: bool
    """One says what the other says, or more of it; else a part of it is different now."""


def alike_in(store: MemoryStore, kind: str, content: str, near: Sequence[Memory]) -> Alike | None:
    """Of the memories that were found near the text, the one that is about the same in nearly the same
    words."""
    said = _said(content)
    for memory in near:
        if memory.store_id == store.pk and memory.kind == kind and memory.valid_until is None:
            other = _said(memory.content)
            if said and len(said & other) / len(said | other) >= ALIKE:
                return Alike(memory, same=said <= other or other <= said)
    return None


def _said(text: str) -> set[str]:
    words = " ".join(word for word in text.split() if plain(word) not in FUNCTION_WORDS)
    return set(terms_of(words))
