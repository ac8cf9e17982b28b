"""What a version promises by the cases it carries, and whether it keeps that: asked of whoever runs cases, on
a floor above, who says at start-up how one asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from harness.errors import Conflict

from .models import SkillVersion

CASES = "cases.yaml"
"""Beside SKILL.md: a suite of cases as docs/evals.md shows it."""


@dataclass(frozen=True, slots=True)
class Contract:
    cases: int
    green: bool
    why: str
    """Why it is not green, in words."""
    address: str
    """The page where the cases are tried."""


ContractOf = Callable[[SkillVersion], Contract | None]
Faults = Callable[[bytes], str]

_asked: list[ContractOf] = []
_read: list[Faults] = []


def judge_with(contract: ContractOf, faults: Faults) -> None:
    """Have both asked from now on; once, however often it is said. `contract` is None for a version without
    cases; `faults` says what keeps the file of cases from being read."""
    if contract not in _asked:
        _asked.append(contract)
        _read.append(faults)


def contract_of(version: SkillVersion) -> Contract | None:
    return next((found for asked in _asked if (found := asked(version))), None)


def faults_of_cases(data: bytes | None) -> str:
    """In words; empty: there are none, or nothing stands against them."""
    if data is None:
        return ""
    return next((why for read in _read if (why := read(data))), "")


def require_green(version: SkillVersion) -> None:
    """Raises Conflict where its cases did not pass, or were not tried."""
    found = contract_of(version)
    if found is not None and not found.green:
        raise Conflict(
            _("Its cases keep it from being stable. %(why)s") % {"why": found.why},
            hint=_("Try its cases, or offer it as canary."),
        )
