"""Arithmetic without `eval`: an expression's syntax tree, read node by node, in exact numbers.

Numbers are fractions, so 0.1 + 0.2 is 0.3; what is irrational (roots, π) is a decimal of 50 digits taken
as a fraction. Every intermediate number is held below `MOST_BITS`, and a power's size is known before
it is worked out, so no expression takes noticeable time or memory.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

from harness.errors import ToolError
from reading.digits import number_of

MOST_CHARACTERS = 1_000
MOST_NODES = 500
MOST_BITS = 4_096
"""Of a numerator or denominator: some 1,233 digits."""
SHOWN_DIGITS = 28
"""Of a number whose decimals do not end."""
EXACT_DIGITS = 40
"""A longer decimal is rounded, be it exact or not; a root or π always has more."""
WORKING_DIGITS = 50
MOST_EXPONENT = 1_000
"""Of a literal such as 1e100."""

PI = Fraction("3.1415926535897932384626433832795028841971693993751")
E = Fraction("2.7182818284590452353602874713526624977572470936999596")

_LITERAL = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?(?P<exponent>\d+))?")


def calculate(expression: str) -> str:
    """The value in digits, with ≈ before it where it is rounded. Raises `ToolError`."""
    text = expression.strip().replace("^", "**").replace("×", "*").replace("÷", "/")
    text = text.replace("−", "-").replace("π", "pi")
    if len(text) > MOST_CHARACTERS:
        raise ToolError(f"The expression is longer than {MOST_CHARACTERS:,} characters.")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise ToolError(
            "This is not an arithmetic expression.",
            hint="Write it like (2 + 3) * 4 ** 2 / 7, with sqrt(x), abs(x), round(x, 2), pi.",
        ) from problem
    if sum(1 for _node in ast.walk(tree)) > MOST_NODES:
        raise ToolError("The expression has too many parts; work it out in pieces.")
    return shown(_Reader(text).value(tree.body))


def shown(number: Fraction) -> str:
    if number.denominator == 1:
        return str(number.numerator)
    if _ends(number.denominator):
        with localcontext() as context:
            context.prec = MOST_BITS
            exact = (Decimal(number.numerator) / Decimal(number.denominator)).normalize()
        digits = format(exact, "f")
        if len(digits) <= EXACT_DIGITS:
            return digits
    with localcontext() as context:
        context.prec = SHOWN_DIGITS
        return f"≈ {Decimal(number.numerator) / Decimal(number.denominator)}"


def _ends(denominator: int) -> bool:
    """Whether a fraction with this denominator has an end in decimals."""
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, node: ast.expr) -> Fraction:
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                return _bounded(self._literal(node))
            case ast.Name(id="pi"):
                return PI
            case ast.Name(id="e"):
                return E
            case ast.UnaryOp(op=ast.USub()):
                return -self.value(node.operand)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.value(node.operand)
            case ast.BinOp(op=ast.Pow()):
                return _power(self.value(node.left), self.value(node.right))
            case ast.BinOp() if type(node.op) in _OPERATIONS:
                return self._operation(node)
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
                return self._call(name, given)
        said = (ast.get_source_segment(self._text, node) or "").strip()[:60]
        raise ToolError(
            f"“{said}” is no arithmetic.",
            hint=f"There are + - * / // % **, {', '.join(_FUNCTIONS)}, pi and e.",
        )

    def _literal(self, node: ast.Constant) -> Fraction:
        """From its digits: as a binary number 0.1 would not be a tenth."""
        if isinstance(node.value, int):
            return Fraction(node.value)
        text = (ast.get_source_segment(self._text, node) or "").replace("_", "")
        match = _LITERAL.fullmatch(text)
        exponent = number_of(match["exponent"] or "0", most=MOST_EXPONENT) if match else None
        if exponent is None:
            raise _too_large()
        return Fraction(text)

    def _operation(self, node: ast.BinOp) -> Fraction:
        left, right = self.value(node.left), self.value(node.right)
        try:
            return _bounded(Fraction(_OPERATIONS[type(node.op)](left, right)))
        except ZeroDivisionError as problem:
            raise ToolError("It divides by zero.") from problem

    def _call(self, name: str, given: list[ast.expr]) -> Fraction:
        least, most, function = _FUNCTIONS[name]
        if not least <= len(given) <= most:
            raise ToolError(f"{name} does not take {len(given)} numbers.")
        return _bounded(function(*map(self.value, given)))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if base == 0 and exponent < 0:
        raise ToolError("It divides by zero.")
    if exponent.denominator != 1:
        return _irrational_power(base, exponent)
    times = exponent.numerator
    if abs(base) not in {0, 1}:
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        # At least so many bits, whatever the digits: refused before it is worked out.
        if (size - 1) * abs(times) > MOST_BITS:
            raise _too_large()
    else:
        times = times % 2 if times else 0
        times = times or (2 if exponent else 0)
    return _bounded(base**times)


def _irrational_power(base: Fraction, exponent: Fraction) -> Fraction:
    if base < 0:
        raise ToolError("A negative number has no such power among the real numbers.")
    if base in {0, 1}:
        return base
    try:
        times = float(exponent)
    except OverflowError:
        raise _too_large() from None
    logarithm = (math.log2(base.numerator) - math.log2(base.denominator)) * times
    if abs(logarithm) > MOST_BITS - 200:
        raise _too_large()
    with localcontext() as context:
        context.prec = WORKING_DIGITS
        return _bounded(Fraction(_decimal(base) ** _decimal(exponent)))


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _root(number: Fraction) -> Fraction:
    if number < 0:
        raise ToolError("A negative number has no square root among the real numbers.")
    top, bottom = math.isqrt(number.numerator), math.isqrt(number.denominator)
    if top * top == number.numerator and bottom * bottom == number.denominator:
        return Fraction(top, bottom)
    with localcontext() as context:
        context.prec = WORKING_DIGITS
        return Fraction(_decimal(number).sqrt())


def _rounded(number: Fraction, places: Fraction = Fraction(0)) -> Fraction:
    """Half away from zero, as people round by hand."""
    if places.denominator != 1 or abs(places) > MOST_EXPONENT:
        raise ToolError("round takes a whole number of places, at most 1,000.")
    scale = Fraction(10) ** places.numerator
    scaled = abs(number) * scale + Fraction(1, 2)
    sign = -1 if number < 0 else 1
    return sign * Fraction(math.floor(scaled)) / scale


def _bounded(number: Fraction) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MOST_BITS:
        raise _too_large()
    return number


def _too_large() -> ToolError:
    digits = int(MOST_BITS * math.log10(2))
    return ToolError(
        f"A number on the way would have more than {digits:,} digits, which is refused.",
        hint="Use smaller numbers, or a logarithm by hand.",
    )


_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, tuple[int, int, Callable[..., Fraction]]] = {
    "sqrt": (1, 1, _root),
    "abs": (1, 1, abs),
    "round": (1, 2, _rounded),
    "floor": (1, 1, lambda number: Fraction(math.floor(number))),
    "ceil": (1, 1, lambda number: Fraction(math.ceil(number))),
    "min": (1, 100, min),
    "max": (1, 100, max),
    "sum": (1, 100, lambda *numbers: sum(numbers, Fraction(0))),
}
"""Name, fewest and most numbers, and what it does with them."""
