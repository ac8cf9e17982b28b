"""JSON that people and programs send, with refusals in their language.

How much is taken, and what is no JSON, is `reading.foreignjson`'s; which object is wanted, the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge
from reading.foreignjson import (
    TEXT_LIMIT,
    TooDeep,
    TooLong,
    TooManyParts,
    Unreadable,
    kept_json,
    read_json,
)


def read_given(
    text: str | bytes, *, field: str = "", hint: str = "", limit: int = TEXT_LIMIT
) -> Any:
    """The value; raises `Invalid`, or `TooLarge` for its length."""
    try:
        return read_json(text, limit=limit)
    except Unreadable as problem:
        raise refusal_of(problem, field=field, hint=hint) from None


def read_object(
    text: str | bytes, *, field: str = "", hint: str = "", limit: int = TEXT_LIMIT
) -> dict[str, Any]:
    """The same for one object, which is all that is taken."""
    value = read_given(text, field=field, hint=hint, limit=limit)
    if not isinstance(value, dict):
        raise Invalid(
            _("This is not a JSON object."), field=field, hint=hint or _("Send one, e.g. {}.")
        )
    return value


def kept_object(value: Any, *, field: str = "", limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """An object that was read elsewhere, as every database keeps it; NUL characters are replaced."""
    if not isinstance(value, Mapping):
        raise Invalid(_("This is not a JSON object."), field=field, hint=_("Send one, e.g. {}."))
    try:
        kept: dict[str, Any] = kept_json(dict(value), limit=limit)
    except Unreadable as problem:
        raise refusal_of(problem, field=field) from None
    return kept


def refusal_of(problem: Unreadable, *, field: str = "", hint: str = "") -> Invalid:
    match problem:
        case TooLong():
            return TooLarge(
                _("The JSON is longer than %(limit)d characters.") % {"limit": problem.limit},
                field=field,
                hint=_("Send less."),
            )
        case TooManyParts():
            return TooLarge(
                _("The JSON holds more than %(most)d values and fields.") % {"most": problem.most},
                field=field,
                hint=_("Send less."),
            )
        case TooDeep():
            return Invalid(
                _("The JSON is nested more than %(limit)d levels deep.") % {"limit": problem.most},
                field=field,
                hint=_("Send a flatter one."),
            )
    return Invalid(
        _("This is no JSON: %(problem)s.") % {"problem": problem},
        field=field,
        hint=hint or _("Send one JSON value, in UTF-8, with its strings in double quotes."),
    )
