"""Agents and environments that share a name: which one is meant, and how lists tell them apart.

Names need not be unique; ids are. Who may see which rows is the caller's query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

from django.utils.translation import gettext as _

from harness.errors import Invalid

SHOWN = 5
"""Ids that a refusal lists."""


class Named(Protocol):
    uid: str
    name: str
    namesake: bool


Row = TypeVar("Row", bound=Named)


def only_one(rows: Iterable[Row], *, wanted: str, field: str) -> Row | None:
    """The row that the name `wanted` picked; None of none. Raises Invalid for several, naming their
    ids: none of them is taken by chance."""
    found = list(rows)
    if len(found) > 1:
        ids = ", ".join(row.uid for row in found[:SHOWN])
        raise Invalid(
            _("More than one is called “%(name)s”.") % {"name": wanted},
            field=field,
            hint=_("Give the id of the one you mean: %(ids)s")
            % {"ids": ids + (" …" if len(found) > SHOWN else ".")},
        )
    return found[0] if found else None


def told_apart(rows: Iterable[Row]) -> list[Row]:
    """The same rows; those whose name another one of them has are marked (`namesake`)."""
    listed = list(rows)
    times = Counter(row.name for row in listed)
    for row in listed:
        row.namesake = times[row.name] > 1
    return listed
