"""Tells apps above that a run has come to its end, in the transaction in which it did."""

from __future__ import annotations

from collections.abc import Callable

from .models import PipelineRun

Follower = Callable[[PipelineRun], None]

_followers: list[Follower] = []


def at_end(follower: Follower) -> None:
    """Have it told from now on; once, however often it is said. What it does must be a hint (`dispatch`): a
    run that ends waits for nobody."""
    if follower not in _followers:
        _followers.append(follower)


def tell(run: PipelineRun) -> None:
    for follower in _followers:
        follower(run)
