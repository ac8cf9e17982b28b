"""How many messages one person may send in a minute, over all doors and processes.

Each one that is sent leaves a row that outlives its conversation: what is deleted was sent all the same.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.db import connection
from django.utils import timezone
from django.utils.translation import ngettext

from accounts.models import User
from accounts.persons import whose_place
from harness.errors import TooMany
from jobs.prepared import Prepared

from .models import SentMessage

WINDOW = timedelta(minutes=1)
KEPT = 2 * WINDOW
"""Longer than they count, because the clocks of two hosts differ."""

_HELD = Prepared(
    lambda given: User.objects.select_for_update(no_key=True).filter(pk=given.pk).values_list("pk")
)

_TABLE = SentMessage._meta.db_table  # noqa: SLF001
_COUNT = (
    f"INSERT INTO {_TABLE} (place_id, created_at) SELECT %s, %s WHERE"  # noqa: S608
    f" (SELECT COUNT(*) FROM {_TABLE} WHERE place_id = %s AND created_at > %s) < %s"
)


def count_message(actor: User, *, now: datetime | None = None) -> None:
    """Count one more message; `TooMany` when the person has sent as many as she may within a minute,
    herself and through service accounts that take her place.

    In the transaction that stores it, so that what is not stored is not counted. Two sent at once are
    counted one after the other: by the person's row, or by the only writer that SQLite knows.
    AGENTSITE_MESSAGES_PER_MINUTE is the limit; 0 is none.
    """
    limit = settings.AGENTSITE_MESSAGES_PER_MINUTE
    if not limit:
        return
    now, place = now or timezone.now(), whose_place(actor)
    if connection.features.has_select_for_update:
        _HELD.first(pk=place)
    moment, since = map(connection.ops.adapt_datetimefield_value, (now, now - WINDOW))
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [place, moment, place, since, limit])
        if cursor.rowcount:
            return
    require_room(actor, now=now)


def require_room(actor: User, *, now: datetime | None = None) -> None:
    """The same without counting anything: asked before something dear is done for a message."""
    limit = settings.AGENTSITE_MESSAGES_PER_MINUTE
    if not limit:
        return
    now = now or timezone.now()
    in_the_way = _oldest_of(limit).first(place=whose_place(actor), since=now - WINDOW)
    if in_the_way is None:
        return
    seconds = max(1, math.ceil((in_the_way[0] + WINDOW - now).total_seconds()))
    raise TooMany(
        ngettext(
            "You sent %(limit)d message within a minute, which is the most this site takes.",
            "You sent %(limit)d messages within a minute, which is the most this site takes.",
            limit,
        )
        % {"limit": limit},
        hint=ngettext(
            "Try again in %(seconds)d second.", "Try again in %(seconds)d seconds.", seconds
        )
        % {"seconds": seconds},
        retry_after=seconds,
    )


def prune() -> int:
    """Forget messages that count no longer; how many there were."""
    old = SentMessage.objects.filter(created_at__lt=timezone.now() - KEPT)
    return old.delete()[0] if old.exists() else 0


@cache
def _oldest_of(limit: int) -> Prepared[tuple[datetime]]:
    """Of the newest `limit` messages that were sent in a person's place the oldest, which must grow old
    before there is room for one more."""
    return Prepared(
        lambda given: (
            SentMessage.objects.filter(place=given.place, created_at__gt=given.since)
            .order_by("-created_at")
            .values_list("created_at")[limit - 1 : limit]
        )
    )
