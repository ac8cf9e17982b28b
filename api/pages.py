"""Pages by cursor. Lists are of one shape, a plain array; where the next page begins is said in
the headers `Link` (rel="next") and `X-Next-Cursor`.

A cursor is opaque to clients and never guessed at: one that was not made here is refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import orjson
from django.utils.translation import gettext as _
from rest_framework.response import Response

from harness.errors import Invalid
from reading.digits import number_of
from reading.foreignjson import read_json

DEFAULT_LIMIT = 100
MAX_LIMIT = 500


def limit_of(request: Any, default: int = DEFAULT_LIMIT) -> int:
    """`?limit=`, 1 to 500. Raises `Invalid`."""
    given = request.query_params.get("limit")
    if given is None:
        return default
    limit = number_of(given, most=MAX_LIMIT)
    if not limit:
        raise Invalid(
            _("limit: A number from 1 to %(most)d is needed.") % {"most": MAX_LIMIT},
            field="limit",
            hint=_("Send one of these, or leave it out."),
        )
    return limit


def encode_cursor(*place: str | int) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def cursor_of(request: Any, *kinds: type) -> list[Any] | None:
    """What `encode_cursor` was given, or None without a cursor. Raises `Invalid`."""
    given = request.query_params.get("cursor")
    if given is None:
        return None
    refusal = Invalid(
        _("cursor: This is not a place in the list."),
        field="cursor",
        hint=_("Give the one of `X-Next-Cursor`, or begin again with the first page."),
    )
    try:
        place = read_json(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
    except (binascii.Error, ValueError):
        raise refusal from None
    if not isinstance(place, list) or len(place) != len(kinds):
        raise refusal
    for part, kind in zip(place, kinds, strict=True):
        if type(part) is not kind:
            raise refusal
        if isinstance(part, int) and not 0 <= part < 2**63:
            raise refusal
        if isinstance(part, str) and ("\0" in part or len(part) > 4_096):
            raise refusal
    return place


def page(request: Any, items: Sequence[Any], next_cursor: str = "") -> Response:
    response = Response(list(items))
    if next_cursor:
        query = request.query_params.copy()
        query["cursor"] = next_cursor
        address = request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
        response["Link"] = f'<{address}>; rel="next"'
        response["X-Next-Cursor"] = next_cursor
    return response
