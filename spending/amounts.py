"""Amounts of tokens and money: as whole numbers for counting, and in words for people.

Money is counted in hundred-millionths of a US dollar, the precision of a usage row's cost.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from django.utils.formats import number_format
from django.utils.translation import ngettext

MONEY = "money"

SMALLEST = Decimal("0.00000001")
"""US dollars."""
LARGEST_TOKENS = 10**15
LARGEST_DOLLARS = Decimal(10**9)
"""The most that may be entered; far below what the columns hold."""


def units_of(dollars: Decimal) -> int:
    """In hundred-millionths, rounded up, so that a reservation never falls short."""
    return int((dollars / SMALLEST).to_integral_value(ROUND_CEILING))


def dollars_of(units: int) -> Decimal:
    return units * SMALLEST


def units_of_millionths(millionths: int) -> int:
    """Of millionths of a US dollar, as programs say them."""
    return millionths * 100


def whole_millionths_of(units: int) -> int:
    """Rounded up, so that nothing that was spent looks like nothing."""
    return -(-units // 100)


def rounded(dollars: Decimal) -> Decimal:
    """As a usage row keeps it, on every database."""
    return dollars.quantize(SMALLEST)


def amount_text(unit: str, amount: int) -> str:
    """`12,300 tokens` or `$1.20`."""
    if unit == MONEY:
        return money(dollars_of(amount))
    return ngettext("%(number)s token", "%(number)s tokens", amount) % {"number": number(amount)}


def plain_amount(unit: str, amount: int) -> str:
    """The same exactly and in no language, for records: `12300 tokens`, `1.2 USD`."""
    return f"{dollars_of(amount).normalize():f} USD" if unit == MONEY else f"{amount} tokens"


def number(value: int) -> str:
    return number_format(value, use_l10n=True, force_grouping=True)


def money(dollars: Decimal) -> str:
    """US dollars with as many decimals as tell something: `$1.20`, `$0.0031`; never a rounded 0."""
    if dollars < 0:
        return f"−{money(-dollars)}"
    if dollars == 0:
        return "$0.00"
    if dollars < Decimal("0.0001"):
        return f"< ${number_format(Decimal('0.0001'), 4)}"
    return f"${number_format(dollars, 2 if dollars >= Decimal('0.1') else 4, force_grouping=True)}"
