"""The body of a request to `/api`, read by its serializer; what is wrong with it as faults in our words.

REST framework finds them; it is told apart by its codes, and the limits are the fields' own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from harness import faults
from harness.faults import Fault, place
from harness.refusals import refusal, wrong_type
from wire.jsonbodies import Unparsed

Place = tuple[str | int, ...]
MOST_ENTRIES = 2_000
"""Of a list whose field says no less: each is read by itself."""


def read_body(
    form: type[serializers.Serializer[Any]], data: Any, *, extra: bool = False
) -> dict[str, Any]:
    """The values of the fields that were sent. Raises `Invalid` that names each that is wrong, and, but
    for `extra`, each that nobody knows."""
    if not isinstance(data, Mapping):
        raise Unparsed(wrong_type("", data, "one JSON object"))
    for name, value in data.items():
        if isinstance(value, list) and len(value) > MOST_ENTRIES:
            raise refusal([faults.too_many(place(str(name)), len(value), MOST_ENTRIES)])
    read = form(data=data)
    read.is_valid()
    found = [] if extra else list(islice(_unknown(read, data, ()), faults.MOST_FAULTS))
    found += islice(_faults(read, read.errors, data, ()), faults.MOST_FAULTS)
    if found:
        raise refusal(found)
    return dict(read.validated_data)


def _unknown(field: Any, value: Any, at: Place) -> Iterator[Fault]:
    """Names that nobody knows, also in what stands in it: REST framework passes them over."""
    if isinstance(field, serializers.Serializer) and isinstance(value, Mapping):
        known = tuple(name for name, inner in field.fields.items() if not inner.read_only)
        for name, inner in value.items():
            if name in field.fields:
                yield from _unknown(field.fields[name], inner, (*at, name))
            else:
                yield faults.unknown_field(place(*at, str(name)), str(name), known)
    elif isinstance(field, serializers.ListSerializer | serializers.ListField):
        for number, inner in enumerate(value if isinstance(value, list) else ()):
            yield from _unknown(field.child, inner, (*at, number))


def _faults(field: Any, errors: Any, value: Any, at: Place) -> Iterator[Fault]:
    if isinstance(errors, Mapping):
        for name, inner in errors.items():
            if name == "non_field_errors":
                yield from _faults(field, inner, value, at)
            else:
                yield from _faults(_below(field, name), inner, _item(value, name), (*at, name))
        return
    for number, error in enumerate(errors):
        if isinstance(error, ErrorDetail):
            yield _fault(field, error, value, place(*at))
            return
        if error:
            yield from _faults(_below(field, number), error, _item(value, number), (*at, number))


def _below(field: Any, name: Any) -> Any:
    inner = getattr(field, "fields", {}).get(name)
    return inner if inner is not None else getattr(field, "child", None)


def _item(value: Any, name: Any) -> Any:
    try:
        return value[name]
    except (LookupError, TypeError):
        return None


def _fault(field: Any, error: ErrorDetail, value: Any, at: str) -> Fault:
    expected = expected_of(field)
    has = len(value) if isinstance(value, (str, list, Mapping)) else 0
    match error.code:
        case "required":
            return faults.missing(at, expected)
        case "max_length" if isinstance(field, serializers.ListField):
            return faults.too_many(at, has, field.max_length or 0)
        case "max_length":
            return faults.too_long(at, has, field.max_length)
        case "min_length" if isinstance(field, serializers.ListField):
            return faults.too_few(at, has, field.min_length or 1)
        case "min_length" | "blank":
            least = getattr(field, "min_length", None) or 1
            return faults.too_short(at, len(value.strip()) if isinstance(value, str) else 0, least)
        case "empty":
            return faults.too_few(at, 0, 1)
        case "min_value":
            return faults.out_of_range(at, f"At least {field.min_value} is needed.", expected)
        case "max_value":
            return faults.out_of_range(at, f"At most {field.max_value} is taken.", expected)
        case "invalid_choice":
            return faults.not_among(at, value, list(field.choices))
    if (kind := _KINDS.get(_kind(field))) and faults.kind_of(value) != kind:
        return faults.wrong_type(at, value, expected, [kind])
    return faults.malformed(at, expected)


_KINDS = {
    serializers.CharField: "a string",
    serializers.BooleanField: "a boolean",
    serializers.IntegerField: "a number",
    serializers.FloatField: "a number",
    serializers.ListField: "a list",
    serializers.DictField: "an object",
    serializers.Serializer: "an object",
}


def _kind(field: Any) -> Any:
    return next((kind for kind in _KINDS if isinstance(field, kind)), None)


def expected_of(field: Any) -> str:
    """What the field takes, to be read behind “Send”."""
    match field:
        case serializers.ChoiceField():
            words = f"one of: {faults.names([str(each) for each in field.choices])}"
        case serializers.CharField():
            words = "a string"
            if field.max_length is not None:
                words += f" of at most {field.max_length:,} characters"
        case serializers.BooleanField():
            words = "true or false"
        case serializers.IntegerField():
            words = f"a whole number{faults.spanned(field.min_value, field.max_value)}"
        case serializers.FloatField():
            words = f"a number{faults.spanned(field.min_value, field.max_value)}"
        case serializers.ListField():
            words = "a list"
            if field.max_length is not None:
                words += f" of at most {field.max_length:,} entries"
        case serializers.DictField() | serializers.Serializer():
            words = "an object"
        case _:
            words = "another value"
    return f"{words}, or null" if getattr(field, "allow_null", False) else words
