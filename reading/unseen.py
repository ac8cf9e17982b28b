"""Signs that nobody sees, and such as turn the text around them: found, and written as escapes.

What a person allows and what a model reads must be the same text. Whether such a sign is refused or only
shown is decided by who asks.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from itertools import chain
from typing import Any

_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_BLANK = frozenset(
    {
        0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0,
        *range(0x180B, 0x1810), *range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0),
    }
)  # fmt: skip
"""Letters, marks and variation selectors that show nothing: each can carry a bit, a row of them a text."""
_PLAIN = frozenset("\n\t")
_JOINERS = frozenset("\u00ad\u061c\u200c\u200d\u200e\u200f\ufeff\ufe0e\ufe0f")
"""What scripts and pictures need, one or two in a row."""
_MOST_JOINERS = 2
_ASSIGNED = (range(0x20000), range(0xE0000, 0xE1000))
"""Where such signs are, but for the planes of private use."""


def visible(text: str) -> str:
    """`text` with every such sign written as an escape; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return _unseen().sub(lambda found: "".join(map(_escaped, found[0])), text)


def visible_json(value: Any, *, indent: int | None = 2) -> str:
    """As JSON in which every such sign is an escape, so that what is shown reads back as what it was."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _unseen().sub(lambda found: json.dumps(found[0])[1:-1], text)


def first_unseen(text: str) -> str:
    """The first such sign, as an escape; empty: all can be seen."""
    found = _unseen().search(text)
    return _escaped(found[0][0]) if found else ""


def first_in_name(name: str) -> str:
    """The first sign of a name that nobody sees there, as an escape, be it one that texts cannot do without:
    two names that look the same would be two. Empty: all can be seen."""
    found = _unseen_in_names().search(name)
    return _escaped(found[0]) if found else ""


def seen_name(name: str, instead: str) -> str:
    """`name` with `instead` in the place of each such sign."""
    return _unseen_in_names().sub(instead, name)


def first_hidden(text: str) -> str:
    """As `first_unseen`, but letting pass what some scripts and composed pictures cannot do without."""
    for found in _unseen().finditer(text):
        if len(found[0]) > _MOST_JOINERS or not _JOINERS.issuperset(found[0]):
            return next(
                (_escaped(each) for each in found[0] if each not in _JOINERS), _escaped(found[0][0])
            )
    return ""


def _escaped(sign: str) -> str:
    point = ord(sign)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


@cache
def _signs() -> str:
    """All but selectors of how a sign is shown, as a part of a pattern."""
    ranges: list[list[int]] = []
    for point in chain(*_ASSIGNED):
        sign = chr(point)
        if sign in _PLAIN or not (unicodedata.category(sign) in _CATEGORIES or point in _BLANK):
            continue
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    ranges += [[0xF0000, 0x10FFFF]]  # two planes for private use
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


@cache
def _unseen() -> re.Pattern[str]:
    """Runs of them. A selector of how a sign is shown counts only behind another one."""
    signs = _signs()
    return re.compile(f"[{signs}][{signs}\ufe0e\ufe0f]*|(?<=[\ufe0e\ufe0f])[{signs}\ufe0e\ufe0f]+")


@cache
def _unseen_in_names() -> re.Pattern[str]:
    return re.compile(f"[{_signs()}\ufe0e\ufe0f\n\t]")
