"""How many examples a property is tried with: a quarter, others each time; all with PROPERTIES=all."""

from __future__ import annotations

import os

WHOLE = os.environ.get("PROPERTIES") == "all"
USUAL = 100
"""Hypothesis' own number."""


def examples(number: int = USUAL) -> int:
    """Of so many in the full proof, how many are tried here."""
    return number if WHOLE else number // 4
