"""The forms a journey is made in: on a desk or a phone, in light or dark. One each, unless `JOURNEYS=all`.

Which page is accessible and fits where is tried in `test_every_page.py`, in each form; a journey proves the
way, which is the same in all of them.

Both look at every `PARTS`th page or place alone (whether axe finds something, whether it fits), at others
with each commit. Of the journeys beside the ways that everybody goes (`DAILY`) a third is made, another with
each commit; a file that is named is run in any case. `JOURNEYS_PART` names what is chosen, `JOURNEYS=all`
looks everywhere and makes all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Literal
from zlib import crc32

import pytest

from tests.parts import chosen_part

Form = Literal["light", "dark", "phone"]

FORMS: dict[Form, dict[str, bool]] = {"light": {}, "dark": {"dark": True}, "phone": {"phone": True}}

IN_ALL = os.environ.get("JOURNEYS") == "all"

PARTS = 6
"""An audit costs more than all else that is done at a page, and most audits of a run find what those of the
run before found."""
THIRDS = 3
COMBINED = PARTS * THIRDS
CHOSEN = chosen_part("JOURNEYS_PART", COMBINED)
PART, THIRD = CHOSEN % PARTS, CHOSEN // PARTS
"""Independent of each other: each place is looked at in each third."""

DAILY = (
    "test_first_start",
    "test_conversation",
    "test_nothing_is_lost",
    "test_approvals_in_place",
    "test_every_page",
    "test_admin",
)
"""Journeys of every run: what everybody does each day, and what opens all pages."""


def is_made(file: str, named: Sequence[str]) -> bool:
    """Whether the journeys of this file (its name without `.py`) are made in this run, for which these paths
    were asked."""
    is_named = any(f"journeys/{file}" in each for each in named)
    return IN_ALL or is_named or file in DAILY or crc32(file.encode()) % THIRDS == THIRD


def in_part(place: int) -> bool:
    """Whether the place with this number is looked at."""
    return IN_ALL or place % PARTS == PART


def turns(name: str) -> Iterator[bool]:
    """For each place where the test of this name looks, in their order: whether it is looked at."""
    return map(in_part, count(crc32(name.encode())))


def in_form(usual: Form, *others: Form) -> pytest.MarkDecorator:
    """Gives the test its `kind`, arguments of `visit`."""
    names = (usual, *others) if IN_ALL else (usual,)
    return pytest.mark.parametrize("kind", [FORMS[name] for name in names], ids=names)


def on_screen(*, phone: bool) -> pytest.MarkDecorator:
    """Gives the test its `phone`: whether it is one."""
    given = [phone, not phone] if IN_ALL else [phone]
    return pytest.mark.parametrize(
        "phone", given, ids=["phone" if each else "desk" for each in given]
    )
