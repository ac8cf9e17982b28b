"""Names of skills that are taken for one another: written with other signs that look the same, or one
slip of the finger apart.
"""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = (("rn", "m"), ("vv", "w"), ("0", "o"), ("1", "l"), ("i", "l"), ("5", "s"), ("-", ""))
SHORTEST = 5
"""Characters below which names one slip apart are common."""


def look_of(name: str) -> str:
    """The same for names that look the same."""
    for signs, alike in _ALIKE:
        name = name.replace(signs, alike)
    return name


def same_look(name: str, others: Iterable[str]) -> str:
    """Another name among these that looks the same; empty: none."""
    look = look_of(name)
    return next((other for other in others if other != name and look_of(other) == look), "")


def one_slip_from(name: str, others: Iterable[str]) -> str:
    """Another name among these from which it is one letter apart: left out, put in, changed, or changed
    places with its neighbour; empty: none."""
    if len(name) < SHORTEST:
        return ""
    return next((other for other in others if other != name and _near(name, other)), "")


def _near(one: str, two: str) -> bool:
    if abs(len(one) - len(two)) > 1:
        return False
    short, long = sorted((one, two), key=len)
    at = next((i for i, sign in enumerate(short) if sign != long[i]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = long[:at] + long[at + 1 : at + 2] + long[at : at + 1] + long[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or short == swapped
