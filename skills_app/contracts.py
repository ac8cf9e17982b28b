"""What a version promises by the cases it carries, whether it keeps that, and what they do: asked of whoever
runs cases, on a floor above, who says at start-up how one asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from django.utils.translation import gettext as _

from harness.errors import Conflict, Declined

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


@dataclass(frozen=True, slots=True)
class Step:
    kind: Literal["write", "command", "tool"]
    text: str
    """The path in the workspace, the command, or the tool's name as agents call it."""
    data: bytes = b""
    """What is written, or the tool's input as JSON."""


@dataclass(frozen=True, slots=True)
class Course:
    """What the script of one case does in its workspace, in order."""

    name: str
    files: Mapping[str, bytes]
    """What lies in the workspace before, by its path."""
    steps: tuple[Step, ...]


ContractOf = Callable[[SkillVersion], Contract | None]
Faults = Callable[[bytes], str]
CoursesOf = Callable[[bytes], tuple[Course, ...]]

_asked: list[ContractOf] = []
_read: list[Faults] = []
_told: list[CoursesOf] = []


def judge_with(contract: ContractOf, faults: Faults, courses: CoursesOf) -> None:
    """Have all asked from now on; once, however often it is said. `contract` is None for a version without
    cases; `faults` says what keeps the file of cases from being read; `courses` what its cases do, and raises
    Declined where it cannot be read."""
    if contract not in _asked:
        _asked.append(contract)
        _read.append(faults)
        _told.append(courses)


def courses_of_cases(data: bytes | None) -> tuple[Course, ...]:
    """None where there are none, and where they cannot be read."""
    if data is None:
        return ()
    for told in _told:
        with suppress(Declined):
            return told(data)
    return ()


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
