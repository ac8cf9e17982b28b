"""Mistakes that a client may make with an operation, made from its OpenAPI description.

For each place of a body: missing, null, another type, too long, too short, out of range, not among the
values, a name nobody knows, a union's `type` that is none; for the whole: nothing, no JSON, too deep. What
an answer to them must be is for the tests to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Place = tuple[str | int, ...]

LONGEST = 200_000
"""Characters of a text that is sent to be one too long; longer limits are not tried here."""
MOST_ENTRIES = 600
SAMPLES: Mapping[str, Any] = {
    "null": None,
    "boolean": True,
    "integer": 7,
    "string": "zzzz",
    "array": [],
    "object": {},
}
MOST_KINDS = 2
"""Of wrong JSON values at one place."""
SECRET = "sk-ant-do-not-repeat-0123456789"
"""A value that no answer may repeat."""


@dataclass(frozen=True, slots=True)
class Mistake:
    what: str
    body: Any = None
    at: Place | None = None
    """Where in the body it is; None: it is about the whole, or not about the body."""
    raw: bytes | None = None
    """Sent in place of `body`."""
    content_type: str = "application/json"
    query: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """In place of those of the path."""
    method: str = ""

    def __str__(self) -> str:
        where = "" if self.at is None else f" at {'.'.join(map(str, self.at)) or 'the top'}"
        more = {**self.query, **self.parameters}
        return f"{self.what}{where}{f' {more}' if more else ''}"


class Description:
    """An OpenAPI document, and what is good for its places."""

    def __init__(self, document: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        """`known`: by the name of a field, a value that is there."""
        self.document = document
        self.known = known
        self._seen: set[str] = set()

    def operations(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for path, item in sorted(self.document["paths"].items()):
            for method, operation in item.items():
                yield method.upper(), path, operation

    # --- mistakes ---------------------------------------------------------------------------------

    def mistakes(self, operation: Mapping[str, Any]) -> Iterator[Mistake]:
        yield from self._around(operation)
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            schema = content["application/json"]["schema"]
            good = self.example(schema)
            yield Mistake("unknown parameter", good, query={"zzzz": "1"})
            yield from _whole(good)
            yield from self._of(schema, good, ())
        elif content:
            yield Mistake("no form", raw=b"zzzz", content_type=next(iter(content)))
            yield Mistake("JSON for a form", body={})

    def _around(self, operation: Mapping[str, Any]) -> Iterator[Mistake]:
        yield Mistake("a method that is not taken", method="PUT")
        for parameter in operation.get("parameters", ()):
            name, schema = parameter["name"], parameter["schema"]
            if parameter["in"] == "path":
                yield Mistake("malformed id", parameters={name: "no such id!"})
                for value in ("%00", "sesn_%00", "-1", str(2**70)):
                    yield Mistake(f"no id, {value}", parameters={name: value})
                yield Mistake("no such id", parameters={name: "sesn_00000000000000000000000000"})
            elif parameter["in"] == "query":
                for value in _wrong_in_query(name, self.resolved(schema)):
                    yield Mistake("bad parameter", query={name: value})

    def _of(self, schema: Any, value: Any, at: Place, base: Any = None) -> Iterator[Mistake]:
        base = value if base is None else base
        schema = self.resolved(schema)
        branches = [self.resolved(one) for one in schema.get("oneOf", schema.get("anyOf", ()))]
        taken = self._types(schema)
        wrong = [
            kind
            for kind in SAMPLES
            if kind not in taken and not (kind == "integer" and "number" in taken)
        ]
        for kind in wrong[:MOST_KINDS]:
            yield Mistake(f"{kind} where it is not taken", placed(base, at, SAMPLES[kind]), at)
        for branch in branches:
            if branch.get("type") == "null":
                continue
            example = self.example(branch)
            rest = Description(self.document, self.known)
            rest._seen = self._seen
            yield from rest._within(branch, example, at, placed(base, at, example))
        if "discriminator" in schema:
            name = schema["discriminator"]["propertyName"]
            example = self.example(schema)
            yield Mistake(
                "unknown type", placed(base, (*at, name), f"{example[name]}x", example), (*at, name)
            )
            yield Mistake("type missing", placed(base, at, {}), (*at, name))
        if not branches:
            yield from self._within(schema, value, at, base)

    def _within(self, schema: Any, value: Any, at: Place, base: Any) -> Iterator[Mistake]:
        match schema.get("type"):
            case "string":
                yield from _texts(schema, at, base)
            case "integer" | "number":
                yield from _numbers(schema, at, base)
            case "array":
                yield from self._arrays(schema, at, base)
            case "object":
                yield from self._objects(schema, value, at, base)

    def _arrays(self, schema: Any, at: Place, base: Any) -> Iterator[Mistake]:
        most, least = schema.get("maxItems"), schema.get("minItems", 0)
        item = self.example(schema.get("items", {}))
        if least:
            yield Mistake("too few", placed(base, at, []), at)
        if most is not None and most <= MOST_ENTRIES:
            yield Mistake("too many", placed(base, at, [item] * (most + 1)), at)
        if most != 0 and "items" in schema:
            inner = (*at, 0)
            yield from self._of(schema["items"], item, inner, placed(base, at, [item]))

    def _objects(self, schema: Any, value: Any, at: Place, base: Any) -> Iterator[Mistake]:
        title = schema.get("title", "")
        nested = bool(at)
        if nested and title and title in self._seen:
            return  # the same object stands elsewhere, where all its mistakes are made
        self._seen.add(title)
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            yield Mistake("missing", without(base, (*at, name)), (*at, name))
        if properties:
            first = next(iter(properties))
            for name, what in ((f"{first}x", "misspelled name"), ("zzzz", "unknown name")):
                yield Mistake(what, placed(base, (*at, name), SECRET), (*at, name))
        for name, inner in properties.items():
            example = value.get(name, self.example(inner, name))
            whole = placed(base, (*at, name), example)
            yield from self._of(inner, example, (*at, name), whole)
        if isinstance(extra := schema.get("additionalProperties"), dict) and extra:
            example = self.example(extra)
            yield from self._of(extra, example, (*at, "key"), placed(base, (*at, "key"), example))
            if most := schema.get("maxProperties"):
                many = {str(number): example for number in range(most + 1)}
                yield Mistake("too many", placed(base, at, many), at)

    # --- the document -----------------------------------------------------------------------------

    def resolved(self, schema: Any) -> Any:
        while True:
            if "$ref" in schema:
                schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            elif len(schema.get("allOf", ())) == 1:
                schema = {**{k: v for k, v in schema.items() if k != "allOf"}, **schema["allOf"][0]}
            else:
                return schema

    def _types(self, schema: Any) -> set[str]:
        schema = self.resolved(schema)
        if "oneOf" in schema or "anyOf" in schema:
            branches = schema.get("oneOf", schema.get("anyOf"))
            found = set().union(*(self._types(one) for one in branches))
        elif "const" in schema or "enum" in schema:
            found = {_type_of(one) for one in schema.get("enum", [schema.get("const")])}
        elif "type" in schema:
            said = schema["type"]
            found = set(said) if isinstance(said, list) else {said}
        else:
            return set(SAMPLES)
        return found | {"null"} if schema.get("nullable") else found

    def example(self, schema: Any, name: str = "") -> Any:
        """A value that fits, with what is required and no more."""
        if name in self.known:
            return deepcopy(self.known[name])
        schema = self.resolved(schema)
        for choice in schema.get("oneOf", schema.get("anyOf", ())):
            if self.resolved(choice).get("type") != "null":
                return self.example(choice)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                properties = schema.get("properties", {})
                return {
                    each: self.example(properties[each], each)
                    for each in schema.get("required", ())
                    if each in properties
                }
            case "array":
                return [self.example(schema["items"])] * schema.get("minItems", 0)
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return True
            case "string":
                return _text(schema)
        return None


def _text(schema: Any) -> str:
    if schema.get("format") == "date-time":
        return "2026-01-31T09:30:00Z"
    pattern = schema.get("pattern", "")
    if "http" in pattern:
        return "https://files.example/a"
    if "[0-9]" in pattern:
        return "100"
    return "x" * int(schema.get("minLength", 1) or 1)


def _texts(schema: Any, at: Place, base: Any) -> Iterator[Mistake]:
    most, least = schema.get("maxLength"), schema.get("minLength", 0)
    yield Mistake("a zero character", placed(base, at, f"{_text(schema)}\0"))
    if most is not None and most <= LONGEST:
        yield Mistake("too long", placed(base, at, "x" * (most + 1)), at)
    if least:
        yield Mistake("too short", placed(base, at, "x" * (least - 1)), at)
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        yield Mistake("misspelled value", placed(base, at, f"{values[0]}x"), at)
        yield Mistake("unknown value", placed(base, at, SECRET), at)
    elif "pattern" in schema or "format" in schema:
        yield Mistake("malformed text", placed(base, at, f"~{SECRET}"), at)


def _numbers(schema: Any, at: Place, base: Any) -> Iterator[Mistake]:
    if (least := schema.get("minimum")) is not None:
        yield Mistake("too small", placed(base, at, least - 1), at)
    if (most := schema.get("maximum")) is not None:
        yield Mistake("too large", placed(base, at, most + 1), at)
    for far, what in ((2**70, "far too large"), (-(2**70), "far too small")):
        yield Mistake(what, placed(base, at, far), at)
    if schema.get("type") == "integer":
        yield Mistake("half a number", placed(base, at, 1.5), at)


def _whole(good: Any) -> Iterator[Mistake]:
    yield Mistake("no body", raw=b"")
    yield Mistake("no JSON", raw=b'{"a": ')
    yield Mistake("no JSON at all", raw=b"name=value")
    yield Mistake("no Unicode", raw=b'{"a": "\xff"}')
    yield Mistake("no number", raw=b'{"a": NaN}')
    yield Mistake("half a character", raw=b'{"a": "\\ud800"}')
    yield Mistake("too deep", raw=b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}")
    yield Mistake("far too deep", raw=b"[" * 50_000)
    yield Mistake("another content type", good, content_type="text/html")


def _wrong_in_query(name: str, schema: Any) -> Iterator[str]:
    inner = schema.get("items", schema)
    if "enum" in inner:
        yield f"{inner['enum'][0]}x"
        yield "zzzz"
    elif inner.get("type") == "integer":
        yield from ("x", "-1", "9" * 30, f"-{2**70}", "1\0")
    elif inner.get("type") == "boolean":
        yield "maybe"
    elif inner.get("format") == "date-time":
        yield "yesterday"
    elif name in {"page", "cursor"} or name.endswith("_id"):
        yield "zzzz"
    yield "\0"


def _type_of(value: Any) -> str:
    for kind, sample in SAMPLES.items():
        if type(value) is type(sample):
            return kind
    return "number"


# --- bodies ---------------------------------------------------------------------------------------


def placed(base: Any, at: Place, value: Any, instead: Any = None) -> Any:
    """`base` with `value` at the place; `instead` first takes the place of what holds it."""
    if not at:
        return value
    made = deepcopy(base)
    if instead is not None:
        made = placed(made, at[:-1], deepcopy(instead))
    holder = made
    for part in at[:-1]:
        holder = holder[part]
    holder[at[-1]] = value
    return made


def without(base: Any, at: Place) -> Any:
    made = deepcopy(base)
    holder = made
    for part in at[:-1]:
        holder = holder[part]
    holder.pop(at[-1], None)
    return made
