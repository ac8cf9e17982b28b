"""The suites that come with this software: they run by their scripts without a model, or with one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

EXAMPLES = Path(__file__).parent / "examples"

FIRST_CASE = """\
name: greets-back
input: Good morning!
told_date: '2026-01-02'
script:
  replies:
  - say: Good morning! What can I do for you?
checks:
- type: text
  any: [good morning, hello]
- type: steps
  at_most: 2
"""
"""What a new case begins with."""


@cache
def example_suites() -> dict[str, str]:
    """Their files, by name."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.yaml"))}
