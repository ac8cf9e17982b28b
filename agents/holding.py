"""Whether a new version of an agent waits before it comes into use, and what keeps one from it: asked of
whoever has a say.

Those stand on floors above, which say at start-up how one asks (`hold_with`).
"""

from __future__ import annotations

from collections.abc import Callable

from .models import Agent, AgentVersion

Holds = Callable[[Agent], bool]
Objects = Callable[[AgentVersion], str]
"""Why the version may not come into use yet, in words; empty: it may."""

_holds: list[Holds] = []
_objects: list[Objects] = []


def hold_with(holds: Holds, objects: Objects) -> None:
    """Have both asked from now on; once, however often it is said."""
    if holds not in _holds:
        _holds.append(holds)
        _objects.append(objects)


def is_held(agent: Agent) -> bool:
    """Whether new versions of it are drafts until they are released."""
    return any(holds(agent) for holds in _holds)


def objection_to(version: AgentVersion) -> str:
    return next((why for objects in _objects if (why := objects(version))), "")
