"""Unicode's normal forms of texts that anybody may have written, in time that grows with the length alone.

Putting combining marks in order takes the square of how many stand in a row. No language needs many:
a text with more than Unicode's own stream-safe format has (UAX #15, 13) is refused. Hosts are
`reading.hostnames`' part.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

MARKS_IN_A_ROW = 30
BEGIN_WITH_A_MARK = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")
"""Characters that are no combining marks, and become some when they are taken apart."""


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Raises ValueError where too many combining marks stand in a row."""
    if text.isascii():
        return text
    row = 0
    for sign in text:
        row = row + 1 if _is_mark(sign) else 0
        if row > MARKS_IN_A_ROW:
            raise ValueError("too many combining marks stand in a row")
    return unicodedata.normalize(form, text)


def with_few_marks(text: str) -> str:
    """`text` without those marks that stand behind many others: for whoever else normalizes it, such as a
    database. That may know a newer Unicode, so what is no character yet counts as a mark."""
    if text.isascii():
        return text
    kept: list[str] = []
    row = 0
    for sign in text:
        row = row + 1 if _is_mark(sign) or unicodedata.category(sign) == "Cn" else 0
        if row <= MARKS_IN_A_ROW:
            kept.append(sign)
    return "".join(kept)


def _is_mark(sign: str) -> bool:
    return unicodedata.combining(sign) > 0 or sign in BEGIN_WITH_A_MARK
