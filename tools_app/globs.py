"""File name patterns: `*`, `?`, `[…]`, `{a,b}` within a name, `**` for any number of folders.

A pattern without a slash matches names at any depth, as in an ignore file. Matching takes time
bounded by pattern times path, whatever the pattern. Finding the files is the workspace's affair.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from harness.errors import Invalid

ALTERNATIVES_LIMIT = 64
"""How many plain patterns the braces of one may stand for."""

_INNERMOST_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """A parsed pattern. Raises `Invalid` for one that leaves the folder it starts in."""

    def __init__(self, pattern: str) -> None:
        self._alternatives = [_segments(plain) for plain in _without_braces(pattern)]

    def matches(self, path: str) -> bool:
        """Whether the whole of `path`, relative to where the search starts, fits."""
        names = path.split("/")
        return any(_fits(names, segments) for segments in self._alternatives)


def _without_braces(pattern: str) -> list[str]:
    patterns = [pattern]
    while any(_INNERMOST_BRACES.search(plain) for plain in patterns):
        patterns = [one for plain in patterns for one in _first_braces_resolved(plain)]
        if len(patterns) > ALTERNATIVES_LIMIT:
            raise Invalid(
                f"The braces of the pattern stand for more than {ALTERNATIVES_LIMIT} patterns.",
                field="pattern",
                hint="Use fewer alternatives.",
            )
    return patterns


def _first_braces_resolved(pattern: str) -> list[str]:
    braces = _INNERMOST_BRACES.search(pattern)
    if braces is None:
        return [pattern]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    return [f"{before}{choice}{after}" for choice in braces[1].split(",")]


def _segments(pattern: str) -> list[str]:
    if pattern.endswith("/"):
        pattern += "**"
    segments = [segment for segment in pattern.split("/") if segment not in {"", "."}]
    if pattern.startswith("/") or ".." in segments:
        raise Invalid(
            "The pattern leads out of the folder it is searched in.",
            field="pattern",
            hint="Give a pattern relative to the workspace, for example “src/**/*.py”.",
        )
    return segments if "/" in pattern else ["**", *segments]


def _fits(names: list[str], segments: list[str]) -> bool:
    # reached[i]: the segments so far can account for exactly the first i names
    reached = [True] + [False] * len(names)
    for position, segment in enumerate(segments):
        if segment == "**":
            first = reached.index(True)
            last = position == len(segments) - 1
            reached = [i >= first + last for i in range(len(names) + 1)]
        else:
            fit = (reached[i] and fnmatchcase(names[i], segment) for i in range(len(names)))
            reached = [False, *fit]
        if not any(reached):
            return False
    return reached[-1]
