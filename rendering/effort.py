"""What reading one text of Markdown may cost, counted in steps, so that every machine decides alike."""

from __future__ import annotations

from markdown_it.utils import EnvType

BRACKETS = 5_000_000
"""Characters that may be looked at in search of closing brackets, which is the parser's one quadratic
search. Ordinary texts need a few thousand."""
LINES = 100_000
"""How often a line may be looked at; every level of quotes and lists looks at those behind it once more."""
LOOKS_PER_CHARACTER = 4


class TooTangled(Exception):
    """The text is shown plain, whenever it is shown."""


def granted(text: str) -> EnvType:
    return {
        "brackets left": BRACKETS,
        "lines left": min(LINES, 1_000 + LOOKS_PER_CHARACTER * len(text)),
    }


def look_at_line(env: EnvType) -> None:
    _spend(env, "lines left", 1)


def look_for_bracket(env: EnvType, characters: int) -> None:
    _spend(env, "brackets left", characters)


def _spend(env: EnvType, name: str, steps: int) -> None:
    env[name] -= steps
    if env[name] < 0:
        raise TooTangled
