"""What stands behind an option on the command line, read and refused in words, by every command alike."""

from __future__ import annotations

import argparse
from collections.abc import Callable

LONGEST = 12
"""Digits; nobody means a longer number."""


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """For `add_argument(type=…)`."""

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) <= LONGEST:
            number = int(text)
            if least <= number <= most:
                return number
        raise argparse.ArgumentTypeError(f"give a whole number from {least} to {most}")

    return read
