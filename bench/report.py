"""What came of a run: the median of its rounds against each budget, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.budgets import Budget, Reading


@dataclass
class Line:
    """One budget's outcome."""

    budget: Budget
    readings: list[Reading] = field(default_factory=list)
    why_not: str = ""
    """Why there is no reading."""

    @property
    def value(self) -> float | None:
        values = [reading.value for reading in self.readings]
        return median(values) if values else None

    @property
    def doubts(self) -> list[str]:
        return sorted({reading.doubt for reading in self.readings if reading.doubt})

    @property
    def verdict(self) -> str:
        value = self.value
        if value is None:
            return "not measured"
        if self.doubts:
            return "does not count"
        if self.budget.limit is None:
            return "for comparison"
        return "met" if self.budget.is_met(value) else "missed"

    def as_dict(self) -> dict[str, Any]:
        return {
            "budget": self.budget.name,
            "figure": self.budget.figure,
            "unit": self.budget.unit,
            "direction": self.budget.direction,
            "limit": self.budget.limit,
            "aim": self.budget.aim,
            "value": self.value,
            "rounds": [reading.value for reading in self.readings],
            "measured": _middle([reading.measured for reading in self.readings]),
            "reference": _middle([reading.reference for reading in self.readings]),
            "verdict": self.verdict,
            "notes": self.doubts + ([self.why_not] if self.why_not else []),
        }


def table(lines: Sequence[Line]) -> str:
    """For people; one line a budget, what was measured and its reference behind it."""
    rows = [("", "figure", "value", "budget", "aim", "verdict", "measured / reference")]
    for line in lines:
        budget, outcome = line.budget, line.as_dict()
        sign = "≥" if budget.direction == "at least" else "≤"
        pair = [_number(one) for one in (outcome["measured"], outcome["reference"]) if one]
        rows.append(
            (
                budget.name,
                budget.figure,
                "–" if line.value is None else f"{_number(line.value)} {budget.unit}",
                "–" if budget.limit is None else f"{sign} {budget.limit:g} {budget.unit}",
                "–" if budget.aim is None else f"{budget.aim:g}",
                line.verdict,
                " / ".join(pair) or "; ".join(outcome["notes"]),
            )
        )
    widths = [max(len(row[place]) for row in rows) for place in range(6)]
    return "\n".join(
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[6]])
        for row in rows
    )


def as_json(lines: Sequence[Line], machine: Mapping[str, Any], **about: Any) -> str:
    whole = {"machine": dict(machine), **about, "budgets": [line.as_dict() for line in lines]}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
