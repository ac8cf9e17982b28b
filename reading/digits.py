"""Numbers that others write, or none.

`str.isdigit` holds for characters that `int` does not read (“²”), and `int` reads ones that nobody meant
(“٢”, “1_0”, “ 1”) and raises for a few thousand digits. `float` reads such ones as well, makes numbers of
“nan” and “inf”, and raises for a whole number beyond them all. What is said of one that is none is the
caller's.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Literal

LARGEST = 2**63 - 1
"""What a column of a table holds at most."""
_LONGEST = 40
"""Characters of an amount; no way to write one that anybody means takes more."""
_OCTAL, _HEXADECIMAL = b"01234567", b"0123456789abcdefABCDEF"
_AMOUNT = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,3})?")


def number_of(text: object, *, most: int = LARGEST) -> int | None:
    """From 0 to `most`, in no more digits than that has, all of them ASCII's."""
    if not isinstance(text, str) or not is_digits(text) or len(text) > len(str(most)):
        return None
    number = int(text)
    return number if number <= most else None


def amount_of(given: object) -> float | None:
    """A number, or a text that writes one as programs do; none where it is beyond all floating ones."""
    if isinstance(given, str) and (len(given) > _LONGEST or not _AMOUNT.fullmatch(given)):
        return None
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    try:
        amount = float(given)
    except OverflowError:
        return None
    return amount if isfinite(amount) else None


def digits_of(text: bytes, base: Literal[8, 16], *, longest: int) -> int | None:
    """A whole number in at most so many digits of this base, and nothing else: no sign, no prefix."""
    known = _OCTAL if base == 8 else _HEXADECIMAL
    if not 0 < len(text) <= longest or text.strip(known):
        return None
    return int(text, base)


def is_digits(text: str | bytes) -> bool:
    """Digits of ASCII and nothing else, however many; at least one."""
    return text.isascii() and text.isdigit()
