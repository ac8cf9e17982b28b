"""Files that are named on the command line. What stands in them is for whoever asked to read."""

from __future__ import annotations

from pathlib import Path

from harness.errors import Invalid


def text_at(name: str) -> str:
    """Its text. Raises Invalid where there is none that can be read."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as problem:
        words = getattr(problem, "strerror", None) or "it is no UTF-8"
        raise Invalid(f"{name}: {words}", field="file", hint="Name a file of text.") from None
