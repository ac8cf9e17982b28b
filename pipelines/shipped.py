"""The pipelines that come with this software: they run by their scripts without a model, or with one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

EXAMPLES = Path(__file__).parent / "examples"


@cache
def example_pipelines() -> dict[str, str]:
    """Their files, by name. What LangGraph drives is the same definition."""
    found = {p.stem: p.read_text(encoding="utf-8") for p in sorted(EXAMPLES.glob("*.yaml"))}
    reviewed = found["reviewed-answer"]
    found["reviewed-answer-langgraph"] = reviewed.replace(
        "name: Reviewed answer\n", "name: Reviewed answer (LangGraph)\nengine: langgraph\n", 1
    )
    return found
