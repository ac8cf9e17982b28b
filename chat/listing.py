"""Pages of the conversation list, by keyset: each begins where the last one ended, nothing is counted.

Follows `Conversation.objects.in_list_order()`. What happens between two pages neither repeats nor
hides a conversation that did not itself move.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from conversations.models import Conversation
from harness.errors import Invalid

PAGE_SIZE = 30

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR = re.compile(r"([0-9]{1,17}|-)\.([0-9]{1,17})\.([0-9]{1,18})")
"""17 digits of microseconds end in the year 5138, which a datetime can hold."""


@dataclass(frozen=True, slots=True)
class ListPage:
    conversations: list[Conversation]
    next_cursor: str
    """Opaque; empty on the last page."""


def list_page(
    queryset: QuerySet[Conversation], cursor: str = "", size: int = PAGE_SIZE
) -> ListPage:
    """The `size` conversations behind `cursor`, or the first ones. One query.

    `queryset` must be in list order. Raises `Invalid` for a cursor this function did not make.
    """
    if cursor:
        queryset = queryset.filter(_behind(cursor))
    found = list(queryset[: size + 1])
    page = found[:size]
    return ListPage(page, next_cursor=_cursor(page[-1]) if len(found) > size else "")


def _cursor(last: Conversation) -> str:
    pinned = "-" if last.pinned_at is None else str(_microseconds(last.pinned_at))
    return f"{pinned}.{_microseconds(last.active_at)}.{last.pk}"


def _behind(cursor: str) -> Q:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise Invalid(
            _("This is not a place in the list."),
            field="after",
            hint=_("Begin again with the first page."),
        )
    pinned, active, pk = match.groups()
    active_at = _moment(active)
    behind = Q(active_at__lt=active_at) | Q(active_at=active_at, pk__lt=int(pk))
    if pinned == "-":
        return Q(pinned_at=None) & behind
    pinned_at = _moment(pinned)
    return Q(pinned_at=None) | Q(pinned_at__lt=pinned_at) | (Q(pinned_at=pinned_at) & behind)


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(microseconds: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(microseconds))
