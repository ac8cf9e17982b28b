"""Hooks that installed packages bring: entry points of the group `agentsite.hooks`.

Each is a function that is given an `About` (`harness.hooks`) and a `Where` and answers None (it passes) or an
`Answer`. It may be async; one that is not runs in a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Literal

GROUP = "agentsite.hooks"


@dataclass(frozen=True, slots=True)
class Answer:
    verdict: Literal["pass", "ask", "refuse"] = "pass"
    reason: str = ""
    context: str = ""
    """Words for the agent, where the point takes any."""


@dataclass(frozen=True, slots=True)
class Where:
    """In which conversation it happens, by public ids."""

    conversation: str
    organisation: str
    agent: str
    parent: str = ""
    """The conversation whose agent asked for this one; empty: people began it."""


def names() -> list[str]:
    """Of those that are installed."""
    return sorted({each.name for each in entry_points(group=GROUP)})


def find(name: str) -> Callable[..., Any]:
    """Raises `LookupError` for one that is not installed, and what its import raises."""
    for each in entry_points(group=GROUP, name=name):
        found: Callable[..., Any] = each.load()
        return found
    raise LookupError(f"no hook {name} is installed")
