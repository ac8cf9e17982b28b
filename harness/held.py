"""What a reply may hold while it streams in, whatever service sends it: beyond it the reply is a fault.

Every provider that reads a wire counts by it, before it keeps or looks through anything. What a whole
stream and one event of it may weigh is `sse`'s; what comes of a fault, the loop's.
"""

from __future__ import annotations

from harness.errors import BadReply
from reading.wholetext import mended

MOST_CHARACTERS = 4_000_000
"""Of texts, arguments and signatures together. No model says so much at once."""
MOST_BLOCKS = 2_000
"""Calls and texts; each is a row of the log."""
MOST_OF_A_NAME = 200
"""Characters of a tool's name; services take 128."""
MOST_OF_A_WORD = 2_000
"""Characters of why a reply ended; past them it is cut."""
MOST_TOKENS = 100_000_000
"""In one figure of the usage."""


class Held:
    """Counts what one reply makes us keep. Everything raises `BadReply`."""

    __slots__ = ("_blocks", "_characters")

    def __init__(self) -> None:
        self._characters = 0
        self._blocks = 0

    def text(self, given: object) -> str:
        """A piece of what is kept, as it came."""
        if not isinstance(given, str):
            raise misshapen()
        self._characters += len(given)
        if self._characters > MOST_CHARACTERS:
            raise too_long(MOST_CHARACTERS)
        return given

    def block(self) -> None:
        """One more begins."""
        self._blocks += 1
        if self._blocks > MOST_BLOCKS:
            raise _beyond(f"it has more than {MOST_BLOCKS:,} calls and texts")

    def name(self, given: object) -> str:
        """Of a tool."""
        name = self.text(given)
        if len(name) > MOST_OF_A_NAME or not name.isprintable():
            raise _beyond("the name of a tool in it is none")
        return name


def word(given: object) -> str:
    """Why a reply ended, fit for the log; empty for what says nothing."""
    return mended(given[:MOST_OF_A_WORD]) if isinstance(given, str) else ""


def figure(given: object) -> int:
    """Of the usage; none is 0. Some services write whole numbers as fractions."""
    match given:
        case None:
            return 0
        case bool():
            pass
        case int() | float() if 0 <= given <= MOST_TOKENS and given == int(given):
            return int(given)
    raise _beyond("its usage has a figure that cannot be")


def misshapen() -> BadReply:
    return _beyond("it does not have the form of a reply")


def too_long(most: int) -> BadReply:
    return BadReply(
        f"The reply is longer than {most:,} characters and was cut.",
        hint="Ask for less at once, or ask whoever runs the model service.",
    )


def _beyond(why: str) -> BadReply:
    return BadReply(
        f"The model service sent a reply that cannot be taken: {why}.",
        hint="What had arrived is kept. Ask whoever runs the model service.",
    )
