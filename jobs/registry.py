"""Jobs by name: how a lower floor starts what a higher one does, with data instead of imports.

A job is a function of keyword arguments that are JSON values. Where it runs (this process or a
worker) is `dispatch`'s business and configuration, never the caller's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from django.conf import settings

Function = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    function: Function
    in_turn: bool
    every: str

    @property
    def seconds(self) -> int:
        """How often it is started by itself; 0: never."""
        return int(getattr(settings, self.every)) if self.every else 0


_jobs: dict[str, Job] = {}


def job(name: str, *, in_turn: bool = False, every: str = "") -> Callable[[Function], Function]:
    """Register an async function as the job `name` (`<app>.<verb>`). A second one is an error.

    `in_turn`: at most AGENTSITE_CONCURRENT_RUNS of these run in one process; more wait, and one that
    waits already is not queued twice. `every`: the setting that says how many seconds apart the job
    is started by itself, without arguments.
    """

    def register(function: Function) -> Function:
        if name in _jobs and _jobs[name].function is not function:
            raise ValueError(f"two jobs are called {name}")
        _jobs[name] = Job(name, function, in_turn, every)
        return function

    return register


def find(name: str) -> Job:
    """The job, or a `LookupError` that lists the known ones."""
    try:
        return _jobs[name]
    except KeyError:
        known = ", ".join(sorted(_jobs)) or "none"
        raise LookupError(f"there is no job {name!r}; known: {known}") from None


def recurring() -> list[Job]:
    return [found for found in _jobs.values() if found.seconds > 0]
