"""The pipelines that come with this software: they run by their scripts without a model, or with one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

EXAMPLES = Path(__file__).parent / "examples"


@cache
def example_pipelines() -> dict[str, str]:
    """Their files, by name."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.yaml"))}
