"""Cells of the files that people open in a spreadsheet: what somebody wrote is never worked out there.

What a file holds is said by whoever writes it (`auditlog`, `reports`).
"""

from __future__ import annotations

import unicodedata

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_PASSED_OVER = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
"""Sorts of characters that some programs drop from the beginning of a cell before they look at it."""


def cell(value: object) -> str:
    """The value as text that no spreadsheet takes for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) or _is_formula(text) else text


def _is_formula(text: str) -> bool:
    for sign in text:
        if unicodedata.category(sign) not in _PASSED_OVER:
            # A full-width sign is one of them to programs that read Japanese.
            return unicodedata.normalize("NFKC", sign).startswith(_FORMULA)
    return False
