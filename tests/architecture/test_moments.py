"""Times that others write are read in one place, where those at the ends of time are none."""

from __future__ import annotations

import ast

from .sources import PRODUCT, nodes_of

READERS = frozenset(
    {
        "fromisoformat",
        "fromtimestamp",
        "utcfromtimestamp",
        "fromordinal",
        "strptime",
        "parse_datetime",
        "parse_date",
        "parsedate_to_datetime",
    }
)
PLACE = "reading/moments.py"
INSIDE = ("sandbox/inside/", "skills_app/shipped/")

OF_OURS = {
    "api/schedules.py": "dates of an order, written by ourselves",
    "v1/deployments.py": "the same",
    "schedules/drafts.py": "the same",
    "schedules/models/order.py": "the same",
    "conversations/log.py": "of an entry, by our clock",
    "subagents/repeated.py": "the same",
    "accounts/api/throttling.py": "by our clock",
}
"""Modules that read times nobody else wrote."""


def test_times_of_others_are_read_in_one_place():
    reading = {
        path.as_posix()
        for path in PRODUCT
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in READERS
        and not path.as_posix().startswith(INSIDE)
    }
    assert reading == {PLACE, *OF_OURS}, "use reading.moments"


def test_moments_of_bodies_are_read_in_one_place():
    """Pydantic's own take the first and the last day there is, with an offset that leads past it."""
    named = {
        path.as_posix()
        for path in PRODUCT
        for node in nodes_of(path)
        if isinstance(node, ast.Name) and node.id in {"AwareDatetime", "NaiveDatetime"}
    }
    assert named == {"v1/moments.py"}, "use v1.moments"
