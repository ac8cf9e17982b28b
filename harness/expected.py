"""What a pydantic model wants at each of its places, in words, and which kinds of JSON value it takes.

Reads the schemas that `pydantic_core` defines; what it does not know is *a value*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from harness.faults import names, spanned

Schema = Mapping[str, Any]

_WRAPPERS = {
    "default": "schema",
    "nullable": "schema",
    "model": "schema",
    "model-field": "schema",
    "function-after": "schema",
    "function-before": "schema",
    "function-wrap": "schema",
    "lax-or-strict": "lax_schema",
    "json-or-python": "json_schema",
    "definitions": "schema",
}
_KINDS = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "decimal": "a number",
    "bool": "a boolean",
    "none": "null",
    "dict": "an object",
    "model-fields": "an object",
    "typed-dict": "an object",
    "tagged-union": "an object",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozenset": "a list",
    "datetime": "a string",
    "date": "a string",
    "time": "a string",
    "uuid": "a string",
    "url": "a string",
}
EVERY_KIND = frozenset({*_KINDS.values()})
_WORDS = {
    "bool": "true or false",
    "none": "null",
    "dict": "an object",
    "model-fields": "an object",
    "typed-dict": "an object",
    "datetime": "a time with its offset, such as 2026-01-31T09:30:00Z",
    "date": "a date, such as 2026-01-31",
    "time": "a time of day, such as 09:30:00",
    "timedelta": "a duration, such as PT30M",
    "uuid": "a UUID",
    "url": "an address that begins with http:// or https://",
    "decimal": "a number",
}
_LISTS = {"list", "tuple", "set", "frozenset"}


class Schemas:
    """One model's schema, with what it refers to."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._defined: dict[str, Schema] = {}
        if root["type"] == "definitions":
            self._defined = {one["ref"]: one for one in root["definitions"]}

    def bare(self, node: Schema | None) -> Schema | None:
        """Without what stands around it: defaults, null, our own checks."""
        while node is not None:
            if node["type"] == "definition-ref":
                node = self._defined.get(node["schema_ref"])
            elif inner := _WRAPPERS.get(node["type"]):
                node = node[inner]
            else:
                return node
        return None

    def takes_null(self, node: Schema | None) -> bool:
        while node is not None:
            if node["type"] == "nullable":
                return True
            if node["type"] == "definition-ref":
                node = self._defined.get(node["schema_ref"])
            else:
                node = node.get(_WRAPPERS.get(node["type"], ""))
        return False

    def child(self, node: Schema | None, part: int | str) -> Schema | None:
        """What is wanted of the field, entry or value `part`."""
        match node:
            case {"type": "model-fields" | "typed-dict", "fields": fields}:
                for name, field in fields.items():
                    if part in _spellings(name, field):
                        return field  # type: ignore[no-any-return]
            case {"type": "dict", "values_schema": inner}:
                return inner  # type: ignore[no-any-return]
            case {"type": "tuple", "items_schema": items} if items and isinstance(part, int):
                return items[min(part, len(items) - 1)]  # type: ignore[no-any-return]
            case {"type": "list" | "set" | "frozenset", "items_schema": inner}:
                return inner  # type: ignore[no-any-return]
        return None

    def names(self, node: Schema | None) -> tuple[str, ...]:
        """The fields of an object, as clients write them."""
        if node is None or "fields" not in node:
            return ()
        return tuple(_spellings(name, field)[0] for name, field in node["fields"].items())

    # --- unions -----------------------------------------------------------------------------------

    def tagged(self, node: Schema, tag: Any) -> Schema | None:
        found: Schema | None = node["choices"].get(tag)
        return found

    def tag(self, node: Schema) -> str:
        named = node.get("discriminator")
        return named if isinstance(named, str) else "type"

    def tags(self, node: Schema) -> list[str]:
        return [str(tag) for tag in node.get("choices", ())]

    def branches(self, node: Schema) -> list[Schema]:
        return [one[0] if isinstance(one, tuple) else one for one in node["choices"]]

    def branch(self, node: Schema, number: int) -> Schema | None:
        choices = self.branches(node)
        return choices[number] if number < len(choices) else None

    def values(self, node: Schema) -> list[Any]:
        """What a field that takes few values takes."""
        found = node.get("expected", node.get("members", ()))
        return [one.value if isinstance(one, Enum) else one for one in found]


def _spellings(name: str, field: Schema) -> Sequence[str]:
    alias = field.get("validation_alias")
    return (alias, name) if isinstance(alias, str) else (name,)


def kinds(schemas: Schemas, node: Schema | None) -> frozenset[str]:
    """The kinds of JSON value (`faults.kind_of`) that are taken, whatever they hold."""
    inner = schemas.bare(node)
    null = frozenset({"null"}) if schemas.takes_null(node) else frozenset()
    if inner is None:
        return EVERY_KIND
    if inner["type"] == "union":
        return null.union(*(kinds(schemas, one) for one in schemas.branches(inner)))
    if inner["type"] in {"literal", "enum"}:
        return null | {_KINDS[_literal_kind(value)] for value in schemas.values(inner)}
    kind = _KINDS.get(inner["type"])
    return null | {kind} if kind else EVERY_KIND


def _literal_kind(value: Any) -> str:
    return "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "str"


def described(schemas: Schemas, node: Schema | None) -> str:
    """What to send, to be read behind “Send”."""
    inner = schemas.bare(node)
    words = _described(schemas, inner) if inner is not None else "a value"
    return f"{words}, or null" if schemas.takes_null(node) and words != "null" else words


def _described(schemas: Schemas, node: Schema) -> str:
    kind = node["type"]
    match kind:
        case "str":
            return _text(node)
        case "int":
            return f"a whole number{spanned(*_bounds(node, step=1))}"
        case "float":
            return f"a number{spanned(*_bounds(node))}"
        case "literal" | "enum":
            values = [_written(value) for value in schemas.values(node)]
            return values[0] if len(values) == 1 else f"one of: {names(values)}"
        case "tagged-union":
            tag = schemas.tag(node)
            return f"an object whose “{tag}” is one of: {names(schemas.tags(node))}"
        case "union":
            return ", or ".join(
                dict.fromkeys(described(schemas, one) for one in schemas.branches(node))
            )
        case _ if kind in _LISTS:
            return _listed(node)
    return _WORDS.get(kind, "a value")


def _text(node: Schema) -> str:
    least, most = node.get("min_length"), node.get("max_length")
    words = "a string"
    if most is not None and least:
        words += f" of {least:,} to {most:,} characters"
    elif most is not None:
        words += f" of at most {most:,} characters"
    elif least:
        words += " that is not empty" if least == 1 else f" of {least:,} characters or more"
    pattern = node.get("pattern")
    return f"{words} of the form {pattern}" if isinstance(pattern, str) else words


def _listed(node: Schema) -> str:
    least, most = node.get("min_length"), node.get("max_length")
    if most == 0:
        return "an empty list"
    if most is not None:
        return f"a list of {least or 0:,} to {most:,} entries"
    return f"a list of {least:,} or more entries" if least else "a list"


def _bounds(node: Schema, step: float = 0) -> tuple[Any, Any]:
    least, most = node.get("ge"), node.get("le")
    if least is None and "gt" in node:
        least = node["gt"] + step
    if most is None and "lt" in node:
        most = node["lt"] - step
    return least, most


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"“{value}”"
