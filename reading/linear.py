r"""Regular expressions for texts of strangers, in an engine whose time grows with the text alone (RE2).

It knows no look-around and no back-references; `\d`, `\s`, `\w` and `\b` speak of ASCII. Expressions of
our own that need more stay with `re`, and are tried out against texts made to run away with them.
"""

from __future__ import annotations

from typing import Any

import re2

MEMORY = 1024**2
"""Bytes of one compiled expression; one that needs more is refused."""

NotLinear = re2.error
"""What `linear` raises for an expression that is none, or none that can be matched in linear time."""


def linear(expression: str, *, memory: int = MEMORY) -> Any:
    """The expression, with the methods of a compiled one of `re`. Texts must be valid Unicode."""
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    return re2.compile(expression, options)


def whole_characters(text: str) -> str:
    """The text with a question mark for every half of a character, which RE2 cannot be given."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
