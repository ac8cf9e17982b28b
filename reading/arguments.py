"""What stands behind an option on the command line, read and refused in words, by every command alike."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from reading.digits import amount_of, number_of


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """For `add_argument(type=…)`."""

    def read(text: str) -> int:
        number = number_of(text, most=most)
        if number is not None and number >= least:
            return number
        raise argparse.ArgumentTypeError(f"give a whole number from {least} to {most}")

    return read


def amount(least: float, most: float) -> Callable[[str], float]:
    """The same for what may have decimals."""

    def read(text: str) -> float:
        number = amount_of(text)
        if number is not None and least <= number <= most:
            return number
        raise argparse.ArgumentTypeError(f"give a number from {least:g} to {most:g}")

    return read
