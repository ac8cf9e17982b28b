"""Which JSON schemas that strangers wrote are taken: those whose shape and expressions stay in bounds.

A schema is judged when it is saved. Checking values against one, sound or not, is done in
`harness.schemachecks`; what a schema is for is said by whoever holds it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import jsonschema
import jsonschema_rs

from reading.digits import number_of
from reading.foreignjson import NESTING, Unreadable, require_shallow
from reading.linear import NotLinear, linear

CHARACTERS = 64_000
"""Of one schema, as JSON."""
MOST_AT_ONCE = 2_000
"""Subschemas that may apply to one and the same value, all references followed."""
LONGEST_CHAIN = 30
"""References and combinations that may lead on to one another before a property or an item is entered."""
PATTERN_PROGRAM = 100_000
"""Instructions of all the schema's expressions together, as RE2 counts them."""

_SAME_VALUE = ("not", "if", "then", "else")
_SAME_VALUE_LISTS = ("allOf", "anyOf", "oneOf")
_INNER = (
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_INNER_MAPS = ("properties", "patternProperties")
_DEFINITIONS = ("$defs", "definitions")


class Unsound(ValueError):
    """A schema that is not taken; the message names the place, the rule and the remedy."""


def require_sound(schema: Mapping[str, Any]) -> None:
    """Raise `Unsound` unless this is a JSON schema (2020-12) that can be checked in bounded time."""
    try:
        require_shallow(schema)
    except Unreadable:
        raise Unsound(
            f"the schema is nested more than {NESTING} levels deep; name inner parts in “$defs” and "
            "refer to them with “$ref”"
        ) from None
    try:
        length = len(json.dumps(schema, allow_nan=False))
    except ValueError:
        raise Unsound(
            "the schema holds a number at # that JSON cannot write (infinite, none, or of thousands of "
            "digits); use a smaller one"
        ) from None
    if length > CHARACTERS:
        raise Unsound(
            f"the schema is longer than {CHARACTERS:,} characters; shorten it, or make it several tools"
        )
    try:
        _OF_SCHEMAS.validate(dict(schema))
    except jsonschema_rs.ValidationError as problem:
        raise Unsound(
            f"this is no JSON schema: what is at {_pointer(problem.instance_path)} may not stand "
            "there in JSON Schema (2020-12); correct or remove it"
        ) from None
    except ValueError as problem:
        raise Unsound(f"this is no JSON schema: {str(problem)[:200]}; correct it") from None
    require_bounded(schema)
    _require_linear_patterns(schema)


# A hundred times as fast as the other library's; the schema of schemas is nobody's text.
_OF_SCHEMAS = jsonschema_rs.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)


def _pointer(parts: Sequence[str | int]) -> str:
    return "/".join(("#", *map(str, parts)))[:200]


def _subschemas(schema: Any, keywords: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The parts under these keywords that are schemas, each with its place below `schema`."""
    for keyword in keywords:
        held = schema.get(keyword)
        if isinstance(held, list):
            yield from ((f"{keyword}/{place}", part) for place, part in enumerate(held))
        elif held is not None:
            yield keyword, held


def _in_maps(schema: Any, keywords: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for keyword in keywords:
        held = schema.get(keyword)
        if isinstance(held, dict):
            yield from ((f"{keyword}/{_escaped(name)}", part) for name, part in held.items())


def _escaped(name: str) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")


def _of_same_value(schema: Any) -> Iterator[tuple[str, Any]]:
    yield from _subschemas(schema, (*_SAME_VALUE, *_SAME_VALUE_LISTS))
    yield from _in_maps(schema, ("dependentSchemas",))


def _all_parts(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every schema within this one, itself first, each once; what is data (`enum`, `const`) is not
    entered, unless a reference leads there. Raises `Unsound` where one leads nowhere."""
    waiting = [("#", schema)]
    seen: set[int] = set()
    while waiting:
        place, part = waiting.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        yield place, part
        if "$ref" in part:
            waiting.append((f"{place}/$ref", _referred(schema, part["$ref"], place)))
        inner = (
            *_of_same_value(part),
            *_subschemas(part, (*_INNER, "prefixItems")),
            *_in_maps(part, (*_INNER_MAPS, *_DEFINITIONS)),
        )
        waiting += [(f"{place}/{step}", one) for step, one in inner]


def require_bounded(schema: Mapping[str, Any]) -> None:
    """References lead to parts of this schema, and what applies to one value is finite and not much."""
    for place, part in _all_parts(schema):
        for keyword in ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef"):
            if keyword in part:
                raise Unsound(
                    f"“{keyword}” at {place[:200]} is not supported; refer with “$ref”: “#/$defs/…”"
                )
    counted: dict[int, int] = {}
    for place, part in _all_parts(schema):
        _count(schema, part, place, counted, ())


def _count(
    root: Mapping[str, Any], part: Any, place: str, counted: dict[int, int], above: tuple[int, ...]
) -> int:
    """How many subschemas apply to a value that `part` applies to."""
    if not isinstance(part, dict):
        return 1
    if (known := counted.get(id(part))) is not None:
        return known
    if id(part) in above:
        raise Unsound(
            f"{place[:200]} refers back to itself without entering a property or an item; "
            "take that reference out"
        )
    if len(above) >= LONGEST_CHAIN:
        raise Unsound(
            f"more than {LONGEST_CHAIN} references and combinations follow one another at "
            f"{place[:200]}; refer to the last one directly"
        )
    above = (*above, id(part))
    parts = list(_of_same_value(part))
    if "$ref" in part:
        parts.append(("$ref", _referred(root, part["$ref"], place)))
    total = 1 + sum(_count(root, one, f"{place}/{step}", counted, above) for step, one in parts)
    if total > MOST_AT_ONCE:
        raise Unsound(
            f"more than {MOST_AT_ONCE:,} subschemas apply to one value at {place[:200]}, because "
            "references and combinations multiply; use fewer of them"
        )
    counted[id(part)] = total
    return total


def _referred(root: Mapping[str, Any], reference: Any, place: str) -> Any:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise Unsound(
            f"“$ref” at {place[:200]} leads elsewhere; a schema may refer only to its own parts "
            "(“#/…”)"
        )
    found: Any = root
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and (at := number_of(name, most=len(found))) is not None:
            found = found[at] if at < len(found) else None
        else:
            found = None
    if not isinstance(found, dict | bool):
        raise Unsound(
            f"“$ref” at {place[:200]} names “{reference[:100]}”, which is no schema here; "
            "add it to “$defs”, or correct the reference"
        )
    return found


def _require_linear_patterns(schema: Mapping[str, Any]) -> None:
    total = 0
    for place, part in _all_parts(schema):
        patterns = part.get("patternProperties")
        for keyword, pattern in (
            *([("pattern", part["pattern"])] if "pattern" in part else []),
            *(("patternProperties", name) for name in patterns or {}),
        ):
            where = f"{place}/{keyword}"[:200]
            try:
                total += compiled(pattern).programsize
            except NotLinear as problem:
                raise Unsound(
                    f"the expression “{str(pattern)[:100]}” at {where} is not taken: "
                    f"{_words_of(problem)}; expressions are RE2's, without look-around and "
                    "back-references"
                ) from None
            if total > PATTERN_PROGRAM:
                raise Unsound(
                    f"the expressions of the schema are too large together (at {where}); use "
                    "smaller repetitions, or “maxLength”"
                )


def _words_of(problem: Exception) -> str:
    said = problem.args[0] if problem.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def compiled(pattern: Any) -> Any:
    """An expression of a JSON schema for RE2, found anywhere in a text. Raises `NotLinear`."""
    try:
        return linear(_as_re2(str(pattern)))
    except UnicodeError:
        raise NotLinear("it is no valid Unicode") from None


def _as_re2(pattern: str) -> str:
    r"""`\u0041`, which is ECMAScript's, as RE2 writes it."""
    if "\\u" not in pattern:
        return pattern
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        sign = pattern[place : place + 2]
        digits = pattern[place + 2 : place + 6]
        if sign == "\\u" and len(digits) == 4 and all(one in _HEXADECIMAL for one in digits):
            parts.append(f"\\x{{{digits}}}")
            place += 6
        else:
            width = 2 if sign.startswith("\\") else 1
            parts.append(pattern[place : place + width])
            place += width
    return "".join(parts)


_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
