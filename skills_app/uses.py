"""Where a skill is used: asked of whoever has it used, on floors above, who say at start-up how one asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from accounts.models import User

from .models import Skill


@dataclass(frozen=True, slots=True)
class Use:
    """One line of *where used*, as far as the person who asks may see it."""

    kind: str
    """`agent` or `conversation`."""
    name: str
    version: str
    """A label or a channel."""
    address: str = ""


IsUsed = Callable[[Skill], bool]
UsesOf = Callable[[User, Skill], Iterable[Use]]

_asked: list[tuple[IsUsed, UsesOf]] = []


def count_uses(is_used: IsUsed, uses_of: UsesOf) -> None:
    """Have both asked from now on; once, however often it is said. The first keeps a skill from being
    deleted, whoever may see it."""
    if (is_used, uses_of) not in _asked:
        _asked.append((is_used, uses_of))


def is_used(skill: Skill) -> bool:
    return any(asked(skill) for asked, _uses in _asked)


def uses_of(user: User, skill: Skill) -> list[Use]:
    return [use for _asked_if, uses in _asked for use in uses(user, skill)]
