"""Pages of lists: opaque cursors, limits, and the bracketed spelling of parameters.

A cursor holds the place after which the next page begins and what it was asked with, signed, so that
it cannot be used for another list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.utils.timezone import is_naive
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel

from harness.errors import Invalid
from reading.digits import number_of
from reading.moments import moment_of
from wire.parameters import plain

from .door import ALWAYS

SALT = "v1.page"
USUAL = 20
MOST = 100
ASC, DESC = "asc", "desc"

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")

_PLACE = {"limit", "page", "order", *ALWAYS}
"""What says where in a list a page is, and how long; all else filters."""

TIMES = {"gt": "gt", "gte": "gte", "lt": "lt", "lte": "lte"}


class Page(BaseModel, Generic[Item]):
    data: list[Item]
    next_page: str | None


class PageBothWays(BaseModel, Generic[Item]):
    data: list[Item]
    next_page: str | None
    prev_page: str | None


def page_of(
    rows: QuerySet[Row],
    query: QueryDict,
    *,
    about: str,
    show: Callable[[Sequence[Row]], list[dict[str, Any]]],
    most: int = MOST,
    usual: int = USUAL,
    key: str = "pk",
    order: str = DESC,
    both_ways: bool = False,
    at_once: int | None = None,
) -> dict[str, Any]:
    """One page of `rows` in the order of `key`. `about` names the list and what it was filtered by:
    a cursor of another one is refused. No page has more than `at_once`, whatever was asked for."""
    limit = whole_number(query, "limit", usual, least=1, most=most)
    limit = min(limit, at_once or limit)
    place, backwards = _place(query, about=about, order=order)
    ascending = (order == ASC) != backwards
    if place is not None:
        rows = rows.filter(**{f"{key}__{'gt' if ascending else 'lt'}": place})
    found = list(rows.order_by(key if ascending else f"-{key}")[: limit + 1])
    more = len(found) > limit
    found = found[:limit]
    if backwards:
        found.reverse()
    last, first = (getattr(found[i], key) if found else None for i in (-1, 0))
    has_next = bool(found) and (more or backwards)
    has_previous = bool(found) and (more if backwards else place is not None)
    body: dict[str, Any] = {
        "data": show(found),
        "next_page": _cursor(about, order, last, "next") if has_next else None,
    }
    if both_ways:
        body["prev_page"] = _cursor(about, order, first, "prev") if has_previous else None
    return body


def place_in(query: QueryDict, *, about: str) -> tuple[Any, Callable[[Any], str]]:
    """For a list that is no table's: the place behind which the page begins, None at its beginning, and
    what makes the next page's cursor of the last place shown."""
    place, _backwards = _place(query, about=about, order=ASC)
    return place, lambda last: _cursor(about, ASC, last, "next")


def _cursor(about: str, order: str, place: Any, direction: str) -> str:
    return signing.dumps([about, order, place, direction], salt=SALT)


def _place(query: QueryDict, *, about: str, order: str) -> tuple[Any, bool]:
    given = query.get("page")
    if given is None:
        return None, False
    try:
        of, in_order, place, direction = signing.loads(given, salt=SALT)
    except (signing.BadSignature, ValueError, TypeError):
        raise Invalid(
            _("This is no cursor of ours."),
            field="page",
            hint=_("Give the next_page of an earlier answer, or leave it out."),
        ) from None
    if (of, in_order) != (about, order):
        raise Invalid(
            _("This cursor belongs to another list, order or filter."),
            field="page",
            hint=_("Ask for the following page with the same parameters."),
        )
    return place, direction == "prev"


# --- parameters -----------------------------------------------------------------------------------


def values(query: QueryDict, name: str, allowed: Sequence[str] | None = None) -> list[str]:
    """All values of `name[]=…`, or of `name=…` without brackets."""
    given = [*query.getlist(f"{name}[]"), *query.getlist(name)]
    for value in given:
        if allowed is not None and value not in allowed:
            raise Invalid(
                _("“%(value)s” is not among the values.") % {"value": value[:60]},
                field=name,
                hint=_("Choose from: %(names)s.") % {"names": ", ".join(allowed)},
            )
    return given


def flag(query: QueryDict, name: str, default: bool = False) -> bool:
    given = query.get(name)
    if given is None:
        return default
    if given.lower() in {"true", "1"}:
        return True
    if given.lower() in {"false", "0"}:
        return False
    raise Invalid(_("It is neither true nor false."), field=name, hint=_("Give true or false."))


def whole_number(query: QueryDict, name: str, default: int, *, least: int, most: int) -> int:
    given = query.get(name)
    if given is None:
        return default
    number = number_of(given, most=most)
    if number is not None and number >= least:
        return number
    raise Invalid(
        _("It is not a whole number from %(least)d to %(most)d.") % {"least": least, "most": most},
        field=name,
        hint=_("Send one of these, or leave it out."),
    )


def choice(query: QueryDict, name: str, allowed: Sequence[str], default: str) -> str:
    given = values(query, name, allowed)
    return given[-1] if given else default


def time_window(query: QueryDict, name: str, column: str) -> dict[str, datetime]:
    """Filters of a queryset for `name[gte]=…` and its kin."""
    window = {}
    for suffix, lookup in TIMES.items():
        given = query.get(f"{name}[{suffix}]", query.get(f"{name}_{suffix}"))
        if given is None:
            continue
        moment = moment_of(given.replace(" ", "+"))
        if moment is None or is_naive(moment):
            raise Invalid(
                _("It is not a time with an offset."),
                field=f"{name}[{suffix}]",
                hint=_("Write it like 2026-01-31T09:30:00Z."),
            )
        window[f"{column}__{lookup}"] = moment
    return window


def describe(about: str, query: QueryDict) -> str:
    """What a cursor is bound to: the list and each of its filters as given, however they are spelt."""
    given_values: dict[str, list[str]] = {}
    for name, given in query.lists():
        if name not in _PLACE:
            given_values.setdefault(plain(name), []).extend(given)
    return "&".join(
        [about, *(f"{name}={','.join(given_values[name])}" for name in sorted(given_values))]
    )


# --- what OpenAPI says of them --------------------------------------------------------------------


def parameter(
    name: str, kind: Any = OpenApiTypes.STR, text: str = "", **more: Any
) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=text, **more)


def paging(most: int = MOST, usual: int = USUAL) -> tuple[OpenApiParameter, ...]:
    return (
        parameter("limit", OpenApiTypes.INT, f"1 to {most}; {usual} if left out."),
        parameter("page", text="The next_page of the answer before."),
    )


def times(name: str) -> tuple[OpenApiParameter, ...]:
    return tuple(
        parameter(f"{name}[{suffix}]", OpenApiTypes.DATETIME, "A time with its offset.")
        for suffix in TIMES
    )
