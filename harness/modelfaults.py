"""What a body breaks of a pydantic model, told as faults: pydantic finds them, the words are ours.

Pydantic names the branches of unions beside the fields, and tells of every branch. Here its places are
followed along the model's own schema and the body, so that what remains is the field as it was sent and,
of a union, the branch that was meant: by `type`, else by the kind of JSON value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

from pydantic import BaseModel, TypeAdapter, ValidationError

from harness import faults
from harness.expected import EVERY_KIND, Schema, Schemas, described, kinds
from harness.faults import Fault, below, kind_of, place
from harness.refusals import refusal

Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")

MOST_READ = 200
"""Of the faults that pydantic found; a long list may break a rule with each entry."""
MOST_TOLD = 2_000
"""Past so many faults pydantic is not asked for them: it writes them all out, and nothing else runs
meanwhile."""
_ABSENT = object()
KEY = "[key]"
"""How pydantic says that not a value but its name breaks a rule."""


@overload
def read_as(
    data: Any, shape: type[Model], *, at: str = "", strict: bool | None = None, context: Any = None
) -> Model: ...
@overload
def read_as(
    data: Any,
    shape: TypeAdapter[T],
    *,
    at: str = "",
    strict: bool | None = None,
    context: Any = None,
) -> T: ...
def read_as(
    data: Any, shape: Any, *, at: str = "", strict: bool | None = None, context: Any = None
) -> Any:
    """`data` as `shape`. Raises `Invalid` (`TooLarge`, for a text), which names each fault; `at` is where
    in the request the data stood."""
    adapted = isinstance(shape, TypeAdapter)
    check = shape.validate_python if adapted else shape.model_validate
    try:
        return check(data, strict=strict, context=context)
    except ValidationError as problem:
        raise refusal(faults_of(problem, shape, data), at=at) from None


def faults_of(
    problem: ValidationError, shape: type[BaseModel] | TypeAdapter[Any], data: Any
) -> list[Fault]:
    """What `data` breaks of `shape`, at least one; unknown names first, for they explain what misses."""
    if (count := problem.error_count()) > MOST_TOLD:
        return [faults.too_many_faults(count)]
    schema = shape.core_schema if isinstance(shape, TypeAdapter) else shape.__pydantic_core_schema__
    errors = problem.errors(include_url=False)[:MOST_READ]
    walk = _Walk(schema, data)
    found = [_Found(error, *walk.follow(error["loc"])) for error in errors]
    by_place: dict[tuple[str, str], Fault] = {}
    for fault in _faults_in(found, walk):
        by_place.setdefault((fault.field, fault.code), fault)
    return sorted(by_place.values(), key=lambda fault: fault.code != "unknown_field")


@dataclass(frozen=True, slots=True)
class _Union:
    """A place where one of several was possible, and which of them an error speaks of."""

    field: str
    node: Schema
    value: Any
    branch: int


@dataclass(frozen=True, slots=True)
class _Found:
    error: Any
    field: str
    node: Schema | None
    value: Any
    unions: tuple[_Union, ...]
    siblings: tuple[str, ...]
    """Fields of the object that the place is in."""


class _Walk:
    """Follows pydantic's places through one body."""

    def __init__(self, schema: Any, data: Any) -> None:
        self.schemas = Schemas(schema)
        self._data = data
        self._labels: dict[str, list[Any]] = {}

    def follow(
        self, loc: Sequence[int | str]
    ) -> tuple[str, Schema | None, Any, tuple[_Union, ...], tuple[str, ...]]:
        node: Schema | None = self.schemas.root
        value = self._data
        parts: list[int | str] = []
        unions: list[_Union] = []
        siblings: tuple[str, ...] = ()
        for part in loc:
            inner = self.schemas.bare(node) if node is not None else None
            kind = inner["type"] if inner is not None else ""
            if inner is not None and kind == "tagged-union":
                node = self.schemas.tagged(inner, part)
                continue
            if inner is not None and kind == "union":
                field = place(*parts)
                labels = self._labels.setdefault(field + "#" * len(unions), [])
                if part not in labels:
                    labels.append(part)
                branch = labels.index(part)
                unions.append(_Union(field, inner, value, branch))
                node = self.schemas.branch(inner, branch)
                continue
            if part == KEY:
                node = inner
                break
            siblings = self.schemas.names(inner)
            parts.append(part)
            node = self.schemas.child(inner, part)
            value = _item(value, part)
        return place(*parts), node, value, tuple(unions), siblings


def _item(value: Any, part: int | str) -> Any:
    if isinstance(value, Mapping):
        return value.get(part, _ABSENT)
    if isinstance(value, (list, tuple)) and isinstance(part, int) and part < len(value):
        return value[part]
    return _ABSENT


def _faults_in(found: Sequence[_Found], walk: _Walk) -> Iterator[Fault]:
    for each in found:
        for union in each.unions:
            fitting = _fitting(union, walk)
            if union.branch not in fitting:
                if not fitting and union.branch == 0:
                    yield _wrong_type(union.field, union.value, union.node, walk)
                break
        else:
            if (fault := _fault(each, walk)) is not None:
                of_name = KEY in each.error["loc"]
                yield replace(fault, rule=f"Of its name: {fault.rule}") if of_name else fault


def _fitting(union: _Union, walk: _Walk) -> list[int]:
    """The branches that take this kind of JSON value; one of them was meant."""
    kind = kind_of(union.value)
    choices = walk.schemas.branches(union.node)
    return [number for number, one in enumerate(choices) if kind in kinds(walk.schemas, one)]


def _fault(found: _Found, walk: _Walk) -> Fault | None:
    """One error in our words; None for one that only follows from others."""
    field, value, error = found.field, found.value, found.error
    context: Mapping[str, Any] = error.get("ctx") or {}
    node = walk.schemas.bare(found.node) if found.node is not None else None
    expected = described(walk.schemas, found.node) if found.node is not None else "another value"
    match error["type"]:
        case "missing":
            return faults.missing(field, expected)
        case "extra_forbidden":
            name = str(error["loc"][-1])
            return faults.unknown_field(field, name, found.siblings)
        case "union_tag_not_found" | "union_tag_invalid" if node is not None:
            tag = walk.schemas.tag(node)
            given = value.get(tag) if isinstance(value, Mapping) else None
            return faults.unknown_type(below(field, tag), given, walk.schemas.tags(node))
        case "literal_error" | "enum" if node is not None and kind_of(value) in kinds(
            walk.schemas, node
        ):
            return faults.not_among(field, value, walk.schemas.values(node))
        case "string_too_long":
            return faults.too_long(field, _length(found), context["max_length"])
        case "string_too_short":
            return faults.too_short(field, _length(found), context["min_length"])
        case "too_long":
            return faults.too_many(field, _length(found), context["max_length"])
        case "too_short":
            # What was refused in it is not counted, and has been told.
            has = _length(found)
            least = context["min_length"]
            return faults.too_few(field, has, least) if has < least else None
        case "greater_than" | "greater_than_equal":
            least = context.get("gt", context.get("ge"))
            rule = f"{'More than' if 'gt' in context else 'At least'} {least} is needed."
            return faults.out_of_range(field, rule, expected)
        case "less_than" | "less_than_equal":
            most = context.get("lt", context.get("le"))
            rule = f"{'Less than' if 'lt' in context else 'At most'} {most} is taken."
            return faults.out_of_range(field, rule, expected)
        case "value_error" | "assertion_error":
            return _own(field, context.get("error"), expected)
    return _wrong_type(field, value, found.node, walk)


def _wrong_type(field: str, value: Any, node: Schema | None, walk: _Walk) -> Fault:
    """For another kind of value than is taken, or one of the kind and not of the form."""
    wanted = kinds(walk.schemas, node)
    expected = described(walk.schemas, node)
    if kind_of(value) in wanted:
        return faults.malformed(field, expected)
    return faults.wrong_type(field, value, expected, () if wanted == EVERY_KIND else wanted)


def _length(found: _Found) -> int:
    """Of the value, or of the name where that is at fault."""
    if found.error["loc"][-1] == KEY:
        return len(str(found.error["loc"][-2]))
    return len(found.value) if isinstance(found.value, (str, Mapping, list, tuple)) else 0


def _own(field: str, error: Any, expected: str) -> Fault:
    """What a rule of ours said: a sentence, perhaps with a `remedy`."""
    said = str(error).rstrip(".")
    rule = f"{said[:1].upper()}{said[1:]}."
    remedy = getattr(error, "remedy", "")
    return Fault(field, rule, remedy or f"Send {expected} that keeps to this.")
