"""Faults as errors to raise, for whoever checks by hand what a model cannot: names and values.

raise refusals.missing("name")
raise refusals.not_among("order", given, ("asc", "desc"))
"""

from __future__ import annotations

from collections.abc import Sequence

from harness import faults
from harness.errors import Invalid, TooLarge
from harness.faults import Fault


def refusal(found: Sequence[Fault], *, at: str = "") -> Invalid:
    """One error for all faults, at least one: the first is its message. `at`: where in the request the
    checked value stood."""
    shown = [each.under(at) for each in found[: faults.MOST_FAULTS]]
    first = shown[0]
    kind = TooLarge if first.code == "too_long" else Invalid
    return kind(first.rule, field=first.field, hint=first.remedy, faults=shown)


def missing(field: str, expected: str = "") -> Invalid:
    """`expected` stands behind “Send “name”:”, without a full stop."""
    return refusal([faults.missing(field, expected)])


def not_among(field: str, given: object, accepted: Sequence[object]) -> Invalid:
    return refusal([faults.not_among(field, given, accepted)])


def wrong_type(field: str, given: object, expected: str) -> Invalid:
    """`expected` stands behind “Send”, without a full stop."""
    return refusal([faults.wrong_type(field, given, expected)])
