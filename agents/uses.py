"""Whether anything works with an agent or an environment: asked of whoever has work for them.

What works with agents stands on floors above, which say at start-up how one asks (`count_uses`).
"""

from __future__ import annotations

from typing import Protocol

from .models import Agent, Environment


class Uses(Protocol):
    def __call__(
        self, *, agent: Agent | None = None, environment: Environment | None = None
    ) -> bool:
        """Whether anything uses the one of both that is named, in any version."""


_uses: list[Uses] = []


def count_uses(uses: Uses) -> None:
    """Have it asked from now on; once, however often it is said."""
    if uses not in _uses:
        _uses.append(uses)


def is_used(*, agent: Agent | None = None, environment: Environment | None = None) -> bool:
    return any(uses(agent=agent, environment=environment) for uses in _uses)
