"""Why something was found, as agents are told."""

from __future__ import annotations

from collections.abc import Sequence


def why_found(words: Sequence[str], likeness: float | None) -> str:
    has = f"has: {', '.join(words) or '–'}"
    return has if likeness is None or likeness <= 0 else f"{has}; alike as a whole: {likeness:.2f}"
