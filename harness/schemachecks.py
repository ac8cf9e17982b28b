"""Values checked against a JSON schema of a stranger in bounded time, whatever both of them are.

Evaluating is `jsonschema`'s. What could run away with it is closed here: expressions are matched by a
linear engine (RE2), and every step is paid for out of a budget. Which schemas are taken at all is
`harness.schemas`'.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from functools import cached_property, partial
from itertools import islice
from math import isfinite
from typing import Any

import jsonschema
import referencing
from jsonschema import ValidationError

from harness.schemas import MOST_AT_ONCE, Unsound, compiled, require_bounded
from reading.foreignjson import Unreadable, require_shallow
from reading.linear import MEMORY, NotLinear

INLINE = 5_000
"""Steps of a check that may be done on an event loop: at worst some ten milliseconds."""
MOST = 500_000
"""Steps of a check in a thread, about half a second. Ordinary calls need some hundred."""

_APPLIED = 10
"""Steps of applying one keyword to one value."""

_COMPARED_AT_ONCE = 100
"""Instructions of an expression times characters of a text that are one step."""
_FAULT = 50
"""Steps of a fault found; they are kept, and gone through once more where one of several had to fit."""
_MESSAGE = 50
"""Characters of a message that are one step."""
LONGEST_MESSAGE = 1_000
_SHOWN = 5
_LOOKED_AT = 50


class TooCostly(Exception):
    """The budget of a check was spent before it was over."""


class _Purse:
    __slots__ = ("left", "patterns")

    def __init__(self, steps: int, patterns: dict[str, Any]) -> None:
        self.left = steps
        self.patterns = patterns

    def pay(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooCostly

    def finds(self, pattern: str, text: str) -> bool:
        """Whether the expression is found in the text; one that RE2 does not know is taken as found."""
        if pattern not in self.patterns:
            self.pay(100)
            try:
                self.patterns[pattern] = found = compiled(pattern)
                self.pay(found.programsize // 2)
            except NotLinear:
                self.patterns[pattern] = None
                self.pay(MEMORY // 100)
        program = self.patterns[pattern]
        if program is None:
            return True
        self.pay(1 + program.programsize * len(text) // _COMPARED_AT_ONCE)
        return program.search(text.encode("utf-8", "replace")) is not None


_purse: ContextVar[_Purse] = ContextVar("purse")

_Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _pay_for_parts(value: Any, times: int = 1) -> None:
    """Pay for every value that this one holds, itself included."""
    purse, waiting = _purse.get(), [value]
    while waiting:
        one = waiting.pop()
        purse.pay(times + _length(one))
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _paid(
    keyword: _Keyword, validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """The library's own keyword, each application and each message paid for."""
    purse = _purse.get()
    purse.pay(_APPLIED + _length(value) + _length(instance))
    for error in keyword(validator, value, instance, schema) or ():
        purse.pay(_FAULT + len(error.message) // _MESSAGE)
        yield error


def _comparing(
    keyword: _Keyword, validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, list | dict):
        _pay_for_parts(instance, times=1 + _length(value))
    return _paid(keyword, validator, value, instance, schema)


def _unevaluated(
    keyword: _Keyword, validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """The library looks at all that applies to the value once more, and finds names in lists."""
    if isinstance(instance, list | dict):
        _purse.get().pay(MOST_AT_ONCE // 10 + len(instance) ** 2 // 20)
    return _paid(keyword, validator, value, instance, schema)


def _pattern(_v: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _purse.get().finds(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    purse = _purse.get()
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if purse.finds(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, held: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    purse = _purse.get()
    named = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    extras = [
        name
        for name in instance
        if name not in named and not any(purse.finds(pattern, name) for pattern in patterns)
    ]
    if isinstance(held, dict):
        for name in extras:
            yield from validator.descend(instance[name], held, path=name)
    elif held is False and extras:
        names = ", ".join(repr(name) for name in sorted(extras)[:20])
        verb = "was" if len(extras) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({names} {verb} unexpected)")


def _multiple_of(_v: Any, factor: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    try:
        quotient = instance / factor if isinstance(factor, float) else None
        fits = not instance % factor if quotient is None else int(quotient) == quotient
    except OverflowError:  # a whole number beyond all floating ones, or a quotient
        finite = isinstance(instance, int) or isfinite(instance)
        fits = finite and not Fraction(instance) % Fraction(factor)
    except ValueError:  # not a number
        fits = False
    if not fits:
        yield ValidationError(f"{instance!r} is not a multiple of {factor!r}")


def _unique_items(_v: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not wanted or not isinstance(instance, list):
        return
    _pay_for_parts(instance, times=5)
    # As texts: their hashes cannot be made to collide, those of numbers can.
    if len({json.dumps(_plain(item), sort_keys=True) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _plain(value: Any) -> Any:
    """With whole numbers as integers, which JSON Schema takes for the same."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


_OURS: dict[str, _Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
}
_HOW = {
    "enum": _comparing,
    "const": _comparing,
    "unevaluatedItems": _unevaluated,
    "unevaluatedProperties": _unevaluated,
}
_Validator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        name: partial(_HOW.get(name, _paid), _OURS.get(name, keyword))
        for name, keyword in jsonschema.Draft202012Validator.VALIDATORS.items()
    },
)
_NOTHING_ELSEWHERE: Any = referencing.Registry()


class Checker:
    """One schema, sound or not, and what values break of it. Safe to use from several threads."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._patterns: dict[str, Any] = {}

    @property
    def ready(self) -> bool:
        """Whether the schema was judged and prepared before, which for a long one takes a moment."""
        return "_unsound" in self.__dict__ and "_validator" in self.__dict__

    def faults(self, value: Any, *, steps: int = MOST) -> list[str]:
        """The first places where `value` breaks the schema, each with what is wrong; none if it fits.

        Raises `TooCostly` when that takes more steps, and `Unsound` for a schema that was stored
        before it would have been refused; a single expression of such a one is passed over.
        """
        if self._unsound is not None:
            raise Unsound(self._unsound)
        token = _purse.set(_Purse(steps, self._patterns))
        try:
            found = list(islice(self._validator.iter_errors(value), _LOOKED_AT))
        except RecursionError:
            raise TooCostly from None
        except TooCostly:
            raise
        except Exception as problem:  # a schema that is none, stored before anybody looked
            raise Unsound(f"it cannot be read ({type(problem).__name__})") from None
        finally:
            _purse.reset(token)
        found.sort(key=lambda error: list(map(str, error.path)))
        return [f"{_place(error)}: {_short(error.message)}" for error in found[:_SHOWN]]

    @cached_property
    def _unsound(self) -> str | None:
        try:
            require_shallow(self._schema)
            require_bounded(self._schema)
        except (Unsound, Unreadable) as problem:
            return str(problem)
        return None

    @cached_property
    def _validator(self) -> Any:
        return _Validator(_without_dialects(self._schema), registry=_NOTHING_ELSEWHERE)


def _without_dialects(schema: Any) -> Any:
    """The schema without `$schema`, which would have the library take another validator for a part."""
    if isinstance(schema, list):
        return [_without_dialects(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: part if name in _DATA else _without_dialects(part)
        for name, part in schema.items()
        if not (name == "$schema" and isinstance(part, str))
    }


_DATA = frozenset({"const", "enum", "default", "examples"})


def _place(problem: ValidationError) -> str:
    return ".".join(map(str, problem.path))[:200] or "input"


def _short(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
