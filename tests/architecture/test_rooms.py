"""No package grows into a house of its own: a subject that makes one too large moves out."""

from __future__ import annotations

from collections import Counter

from .sources import MODULES, ROOT

MOST_LINES = 14_000
"""Of one package, without migrations and tests."""


def test_no_package_holds_more_than_one_can_know():
    lines = Counter[str]()
    for path in MODULES:
        lines[path.parts[0]] += len((ROOT / path).read_text(encoding="utf-8").splitlines())
    assert {name: many for name, many in lines.items() if many >= MOST_LINES} == {}
