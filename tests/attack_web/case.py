"""What one attack on the site is: who tries what, and how it would show that they got it.

An attack is a function of the world that says in words what the attacker got; nothing: it held. It judges
by what came back or changed, never by a status alone. One that could not be tried raises `NotTried`.

A control is an act that is permitted and must work: a site that refuses everything holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Got = str
"""What the attacker got, in words; empty: nothing."""


class NotTried(Exception):
    """The attack did not come to pass, so nothing is known. Says what was missing."""


@dataclass(frozen=True)
class Case:
    subject: str
    name: str
    tries: str
    act: Callable[[Any], Got]
    quick: bool
    """Part of the quick form."""
    permitted: bool = False
    """A control; `act` says in words what stood in its way."""


CASES: list[Case] = []


def attack(subject: str, name: str, tries: str, *, quick: bool = True) -> Callable[[Any], Any]:
    """Registers a function of the world as an attack."""

    def register(act: Callable[[Any], Got]) -> Callable[[Any], Got]:
        assert all((one.subject, one.name) != (subject, name) for one in CASES), name
        CASES.append(Case(subject, name, tries, act, quick))
        return act

    return register


def control(subject: str, name: str, does: str) -> Callable[[Any], Any]:
    """Registers a function of the world as an act that must work. Part of the quick form."""

    def register(act: Callable[[Any], Got]) -> Callable[[Any], Got]:
        assert all((one.subject, one.name) != (subject, name) for one in CASES), name
        CASES.append(Case(subject, name, does, act, quick=True, permitted=True))
        return act

    return register


def tried(holds: object, what: str) -> None:
    """What must be so for the attack to mean anything: a control that works, a scene that stands."""
    if not holds:
        raise NotTried(what)
