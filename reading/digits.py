"""A whole number that others write in digits, or none.

`str.isdigit` holds for characters that `int` does not read (“²”), and `int` reads ones that nobody meant
(“٢”, “1_0”, “ 1”) and raises for a few thousand digits. What is said of one that is none is the caller's.
"""

from __future__ import annotations

LARGEST = 2**63 - 1
"""What a column of a table holds at most."""


def number_of(text: object, *, most: int = LARGEST) -> int | None:
    """From 0 to `most`, in no more digits than that has, all of them ASCII's."""
    if not isinstance(text, str) or not is_digits(text) or len(text) > len(str(most)):
        return None
    number = int(text)
    return number if number <= most else None


def is_digits(text: str | bytes) -> bool:
    """Digits of ASCII and nothing else, however many; at least one."""
    return text.isascii() and text.isdigit()
