"""What somebody else may still say about a call that the policy lets run: hold it back, or ask a person.

The port alone. Nothing that is said here can allow what the policy does not: it is asked last, and not at all
about what is denied or waits. Who is asked, how long and what their silence means is an app's (`hooks`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.events import Event


@dataclass(frozen=True, slots=True)
class AboutCall:
    """A call that is about to run."""

    call_id: str
    tool: str
    effect: str
    """`harness.tools.Effect`."""
    arguments: Mapping[str, Any]
    """As it would run, also where a person changed them."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What came of asking; as it is by itself, the call runs."""

    refusal: str = ""
    """Why it may not run, as the model is told."""
    question: str = ""
    """Why a person is to decide first. Of no weight once one has allowed the call."""
    events: tuple[Event, ...] = ()
    """Stored with what follows from it."""


PASSED = Ruling()

BeforeCall = Callable[[AboutCall], Awaitable[Ruling]]
"""May be asked more than once about one call: by each run that would start it."""
