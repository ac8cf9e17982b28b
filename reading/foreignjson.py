"""JSON that strangers wrote, read within limits: of its length, and of how deep it is nested.

What leaves here can be walked by recursion and, but for `read_raw_json`, encoded as UTF-8 and kept as JSON
by every database. What it must say is for whoever asked; words for people are made by the doors
(`wire.givenjson`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isinf
from typing import Any

from reading.jsonparts import has_more_than
from reading.wholetext import decoded, mended, storable_value

NESTING = 60
"""Objects and lists inside one another; deeper ones are nobody's message."""
TEXT_LIMIT = 1_000_000
"""Characters (bytes, where bytes are given) unless the caller says otherwise."""
PARTS = 200_000
"""Values and fields unless the caller says otherwise: what a moment is enough to read and to judge."""

_HALVES = ("\\ud", "\\uD")
_ODD = (*_HALVES, "\\u0000", "\0")
"""How escapes begin that spell halves of characters, and a NUL in both spellings."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Unreadable(ValueError):
    """This is not JSON, or none that can be kept; the message says why."""


class TooDeep(Unreadable):
    def __init__(self, most: int) -> None:
        super().__init__(f"it is nested more than {most} levels deep")
        self.most = most


class TooManyParts(Unreadable):
    def __init__(self, most: int) -> None:
        super().__init__(f"it holds more than {most:,} values and fields")
        self.most = most


class TooLong(Unreadable):
    def __init__(self, limit: int) -> None:
        super().__init__(f"it is longer than {limit:,} characters")
        self.limit = limit


class GivenTwice(Unreadable):
    def __init__(self, key: str) -> None:
        super().__init__("a key is given twice")
        self.key = key


def read_json(
    text: str | bytes,
    *,
    limit: int = TEXT_LIMIT,
    nesting: int = NESTING,
    parts: int = PARTS,
    once: bool = False,
) -> Any:
    """The value. Raises `Unreadable`, and nothing else, whatever was given.

    `NaN`, infinite numbers and halves of characters are refused: they are not JSON, or no database
    keeps them. With `once` also an object that gives a key twice, as `GivenTwice`.
    """
    plain, value = _read(text, _ONCE if once else _STRICT, limit, nesting, parts)
    if any(each in plain for each in _HALVES):
        _require_whole_characters(value)
    return value


def read_mended_json(
    text: str | bytes, *, limit: int = TEXT_LIMIT, nesting: int = NESTING, parts: int = PARTS
) -> Any:
    """The same for what is not to be lost over a sign: what a text cannot be kept with is replaced in it,
    line ends and the like may stand in a text as they are, and a number that is none is nothing."""
    whole = decoded(text) if isinstance(text, bytes) else mended(text)
    whole = whole.removeprefix("\ufeff")
    # A text that goes past the end of its line would hide values from who counts them.
    decoder = _LENIENT if len(whole) <= parts else _LENIENT_BY_LINES
    plain, value = _read(whole, decoder, limit, nesting, parts)
    # But for a NUL, only an escape spells what is not in the text itself, which is valid.
    return storable_value(value) if any(each in plain for each in _ODD) else value


def read_raw_json(
    text: str | bytes, *, limit: int = TEXT_LIMIT, nesting: int = NESTING, parts: int = PARTS
) -> Any:
    """The same for pieces whose texts are put together before anybody keeps them: halves of characters
    and numbers that are none stand in it."""
    return _read(text, _RAW, limit, nesting, parts)[1]


def _read(
    text: str | bytes, decoder: json.JSONDecoder, limit: int, nesting: int, parts: int
) -> tuple[str, Any]:
    """The text and its value."""
    if len(text) > limit:
        raise TooLong(limit)
    try:
        if isinstance(text, bytes):
            text = text.decode()
        elif not text.isascii():
            text.encode()
        if len(text) > parts and has_more_than(parts, text.encode()):
            raise TooManyParts(parts)
        value = decoder.decode(text)
    except RecursionError:
        raise TooDeep(nesting) from None
    except Unreadable:
        raise
    except UnicodeError:
        raise Unreadable("it is no valid Unicode") from None
    except json.JSONDecodeError as problem:
        raise Unreadable(_where(problem)) from None
    except ValueError:
        raise Unreadable("a number has more digits than anybody reads") from None
    if text.count("[") + text.count("{") > nesting:
        require_shallow(value, nesting)
    return text, value


def require_shallow(value: Any, nesting: int = NESTING) -> None:
    """Raises `TooDeep`; for values that another parser made."""
    level = [value]
    for _ in range(nesting + 1):
        level = [item for item in level if isinstance(item, (Mapping, list, tuple))]
        if not level:
            return
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, Mapping) else item)
        ]
    raise TooDeep(nesting)


def kept_json(value: Any, *, limit: int = TEXT_LIMIT) -> Any:
    """A value from anywhere as every database keeps it as JSON, or `Unreadable`."""
    require_shallow(value)
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise Unreadable(str(problem)) from None
    return without_nul(read_json(text, limit=limit))


def without_nul(value: Any) -> Any:
    """A plain, shallow value in which a replacement character stands for every NUL character, which
    one of the databases cannot hold. Nothing else is changed."""
    if isinstance(value, str):
        return value.replace("\0", _REPLACEMENT)
    if isinstance(value, dict):
        return {without_nul(key): without_nul(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nul(item) for item in value]
    return value


def _where(problem: json.JSONDecodeError) -> str:
    if not problem.doc.strip():
        return "it is empty"
    return f"it cannot be read at line {problem.lineno}, column {problem.colno}"


def _require_whole_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unreadable("a text holds half of a surrogate pair") from None


def _no_number(constant: str) -> Any:
    raise Unreadable(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise Unreadable(f"the number {digits[:40]} is too large")
    return number


def _finite_or_nothing(digits: str) -> float | None:
    number = float(digits)
    return None if isinf(number) else number


def _whole_or_nothing(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # more digits than anybody reads
        return None


def _nothing(_constant: str) -> None:
    return None


def _given_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise GivenTwice(key)
        found[key] = value
    return found


_STRICT = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
_ONCE = json.JSONDecoder(
    parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_given_once
)
_LENIENT_BY_LINES = json.JSONDecoder(
    parse_constant=_nothing, parse_float=_finite_or_nothing, parse_int=_whole_or_nothing
)
_LENIENT = json.JSONDecoder(
    parse_constant=_nothing,
    parse_float=_finite_or_nothing,
    parse_int=_whole_or_nothing,
    strict=False,
)
_RAW = json.JSONDecoder()
