"""How far Markdown that is still arriving is finished: up to where no word to come can change it.

A line at a time and without a parser, so that a text costs the same however many pieces it comes in.
It errs on the side of waiting: what it cuts off would be a block of its own for `markdownpieces` too.
Links and footnotes that are defined further on are the exception; the whole text, drawn at its end, has them.
"""

from __future__ import annotations

import re

from .markdown import LONGEST
from .math import LONGEST as LONGEST_FORMULA
from .math import closing_of

_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_MATHS = {"$$": "$$", "\\[": "\\]"}
LINES = 5_000
"""Of a text that are looked at while it arrives; readers do that where everybody waits."""
_TELLING = 12
"""Characters of a line by which it can be told from the item of a list."""


class _Formula:
    """Lines that open a formula, and may turn out to be none: `math` has the same rules."""

    def __init__(self, line: str, ends: str) -> None:
        self._ends = ends
        self._length = len(line) - len(ends)
        self._is_empty = self._length == 0
        self.holds_more = False
        """Something in it begins a block of its own, if it is none."""

    def take(self, line: str) -> bool | None:
        """Whether this is its last line; None: it is no formula."""
        said = line.strip()
        if not said:
            return None
        found = closing_of(said, self._ends, 0, len(said))
        if found >= 0:
            is_one = said[found:] == self._ends and not (self._is_empty and found == 0)
            return True if is_one else None
        self._is_empty = False
        self._length += len(said)
        self.holds_more = self.holds_more or bool(_MARKER.match(said) or _opened(said))
        return False if self._length <= LONGEST_FORMULA else None


class Growing:
    """One text as it arrives. What is longer than `LONGEST`, which is shown plain at its end, or has more
    than `LINES`, is left alone from there on; so is what follows lines that look like a formula and are none,
    if another block may begin in them."""

    def __init__(self) -> None:
        self.length = 0
        """Characters that came."""
        self.finished = 0
        """Characters at its beginning that nothing to come can change."""
        self._lines_left = LINES
        self._lines: list[str] = []
        """The whole lines behind these."""
        self._line: list[str] = []
        """What came of the line that is open."""
        self._beginning = ""
        """As much of it as tells what it begins."""
        self._end = ""
        """What ends the code that is open; empty while none is."""
        self._formula: _Formula | None = None
        """What is open and may be one."""
        self._is_unclear = False
        """Where the lines belong that come next is for a parser to say."""
        self._stands_alone = False
        """It is no part of a list, so that its end is the end of a block."""
        self._in_list = False
        self._after_blank = False

    def add(self, text: str) -> str:
        """Take what came next; what is finished by it and was not before, mostly nothing."""
        self.length += len(text)
        if self.length > LONGEST or not self._lines_left:
            return self._leave_alone()
        done: list[str] = []
        place = 0
        while (stop := text.find("\n", place)) >= 0:
            self._grow(text[place:stop])
            done += self._take_line()
            place = stop + 1
            self._lines_left -= 1
            if not self._lines_left:
                return self._leave_alone()
            if self._is_unclear:
                self._leave_alone()
                break
        if place < len(text) and not self._is_unclear:
            self._grow(text[place:])
            if self._begins_block(self._beginning, whole=False):
                done += self._begin_block()
        finished = "".join(done)
        self.finished += len(finished)
        return finished

    def _leave_alone(self) -> str:
        self._lines_left = 0
        self._lines, self._line = [], []
        return ""

    def _grow(self, text: str) -> None:
        self._line.append(text)
        if len(self._beginning) < _TELLING:
            self._beginning += text[: _TELLING - len(self._beginning)]

    def _take_line(self) -> list[str]:
        """Now that it is whole; what is finished by it."""
        line = "".join(self._line)
        self._line, self._beginning = [], ""
        done = self._begin_block() if self._begins_block(line, whole=True) else []
        self._lines.append(f"{line}\n")
        if self._ends_block(line):
            done += self._begin_block()
        return done

    def _begin_block(self) -> list[str]:
        """What stands before it, which is finished by that."""
        self._in_list = self._after_blank = False
        done, self._lines = self._lines, []
        return done

    def _begins_block(self, line: str, *, whole: bool) -> bool:
        """Whether another block than the one that is open begins with this line."""
        if self._end or not self._after_blank or not line or line[0].isspace():
            return False
        if not self._in_list:
            return True
        return (whole or len(line) >= _TELLING) and not _MARKER.match(line)

    def _ends_block(self, line: str) -> bool:
        """Take a whole line; whether it is the last of a block that stands alone."""
        said = line.strip()
        if self._end:
            if not said.startswith(self._end) or said.strip(self._end[0]):
                return False
            self._end = ""
            return self._stands_alone
        if self._formula is not None:
            is_last = self._formula.take(line)
            if is_last is False:
                return False
            formula, self._formula = self._formula, None
            if is_last and self._stands_alone:
                return True
            self._is_unclear = formula.holds_more
            if is_last:
                return False
        if not said:
            self._after_blank = True
            return False
        self._after_blank = False
        indented = line[0].isspace()
        self._in_list = self._in_list or (not indented and bool(_MARKER.match(line)))
        opened = _opened(line)
        if isinstance(opened, _Formula):
            self._formula = opened
        else:
            self._end = opened
        self._stands_alone = not (indented or self._in_list)
        return False


def _opened(line: str) -> str | _Formula:
    """What ends the code that this line opens, or its formula; empty where it opens none."""
    said = line.strip()
    if said[:3] in {"```", "~~~"}:
        behind = said.lstrip(said[0])
        return "" if said[0] == "`" and "`" in behind else said[: len(said) - len(behind)]
    for begins, ends in _MATHS.items():
        if said.startswith(begins) and closing_of(said, ends, len(begins), len(said)) < 0:
            return _Formula(said, ends)
    return ""
