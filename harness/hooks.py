"""What somebody else may still say about what the policy lets happen: hold it back, have a person asked, add
words for the agent.

The port alone. Nothing that is said here can allow what the policy does not: about calls it is asked last,
and not at all about what is denied or waits. Who is asked, how long and what their silence means is an app's
(`hooks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.events import Event
from harness.history import History

TURN_BEFORE, MODEL_BEFORE, COMPACTION_BEFORE = "turn.before", "model.before", "compaction.before"
TOOL_BEFORE, TOOL_AFTER, CHILD_BEFORE = "tool.before", "tool.after", "child.before"
HELD_BACK = "hook_refused"
"""The code of a rest where hooks let no request be made; it says why in their words."""
ON_CALLS = frozenset({TOOL_BEFORE, TOOL_AFTER})
"""Points that are none for calls which run elsewhere."""


@dataclass(frozen=True, slots=True)
class About:
    """What is about to happen, or has just happened."""

    point: str
    subject: str
    """The id of the call, or of the event that began the turn."""
    tool: str = ""
    effect: str = ""
    """`harness.tools.Effect`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """As it would run, also where a person changed them."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else is known at this point, as JSON has it."""
    tainted_by: str = ""
    """What brought in words of others before, since a person last spoke; empty: nothing did."""

    @property
    def call_id(self) -> str:
        return self.subject if self.tool else ""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What came of asking; as it is by itself, what is asked about goes on."""

    refusal: str = ""
    """Why it may not, as the model is told."""
    question: str = ""
    """Why a person is to decide first. Of no weight once one has allowed the call."""
    events: tuple[Event, ...] = ()
    """Stored with what follows from it."""
    added: str = ""
    """Words for the end of a result; at other points they are the events'."""
    untrusted_by: str = ""
    """Whose words those are, or those of the refusal or the question, where they are nobody's of ours."""
    sets_aside: tuple[str, ...] = ()
    """Messages that are left out of every prompt, because what they say is refused."""

    def with_next(self, later: Ruling) -> Ruling:
        """Both, where the later was asked behind this one."""
        return Ruling(
            self.refusal or later.refusal,
            self.question or later.question,
            (*self.events, *later.events),
            "\n\n".join(filter(None, (self.added, later.added))),
            self.untrusted_by or later.untrusted_by,
            self.sets_aside or later.sets_aside,
        )


PASSED = Ruling()


class Hooks(Protocol):
    """Whom a run asks."""

    @property
    def points(self) -> Set[str]:
        """At which anybody wants to be asked; at the others `ask` is not called."""

    def sees(self, tool: str) -> bool:
        """Whether anybody is asked about calls of a tool with this name."""

    def before_request(self, history: History) -> Sequence[About]:
        """What is to be asked before the next request of the dialogue."""

    async def ask(self, about: About, extras: Mapping[str, Any]) -> Ruling:
        """May be asked more than once about one thing: by each run that would begin it. `extras`: those of
        the kit."""

    async def ended(self) -> None:
        """The run has ended by itself. One that did not, or whose process did, tells nobody."""
