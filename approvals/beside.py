"""What waits for a person beside calls, on pages of other subjects: tabs of the queue with a number each.

An app registers at start-up; the queue knows no other subject's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse

from accounts.models import User

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


@dataclass(frozen=True, slots=True)
class Beside:
    """A list that a person finds beside her approvals."""

    view: str
    """What its page calls itself, to be shown as the open one."""
    label: str | _StrPromise
    route: str
    count: Callable[[User], str]
    """How much waits for her there, in few characters; empty: nothing. Asked on every page of the queue."""


@dataclass(frozen=True, slots=True)
class Tab:
    view: str
    label: str | _StrPromise
    address: str
    count: str


_beside: list[Beside] = []


def wait_beside(one: Beside) -> None:
    """Have the queue lead to it from now on; once, however often it is said."""
    if one not in _beside:
        _beside.append(one)


def tabs(user: User) -> Iterator[Tab]:
    for one in _beside:
        yield Tab(one.view, one.label, reverse(one.route), one.count(user))
