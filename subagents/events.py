"""What the log of a conversation says of those below it that wait for people."""

from __future__ import annotations

from harness.content import Frozen
from harness.events import AppEvent


class ThreadAsk(Frozen):
    thread: str
    """The id of a conversation below."""
    name: str
    """What it was called by."""
    calls: tuple[str, ...] = ()
    """Ids of its calls that wait for a person; none: it goes on."""
    known: tuple[str, ...] = ()
    """Those of them that were told of before, as they are now."""
    read_to: str = ""
    """The event of its log with which it waits: who is told of these calls has read up to there."""


class SubagentsAsk(AppEvent):
    """Which of those below wait for a person, where that has changed. The page shows the questions
    themselves; this is for who follows this log alone."""

    type: str = "x.subagents_ask"
    asking: tuple[ThreadAsk, ...] = ()
    going_on: tuple[ThreadAsk, ...] = ()
    rests: bool = False
    """Nobody of the tree works: it goes on when one of them is answered."""
    all_calls: tuple[str, ...] = ()
    """All calls that wait in the tree now."""
