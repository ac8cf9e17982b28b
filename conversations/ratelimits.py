"""How many messages one person may send in a minute, over all doors and processes."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.utils import timezone
from django.utils.translation import ngettext

from accounts.models import User
from harness.errors import TooMany
from jobs.prepared import Prepared

from .models import Event

WINDOW = timedelta(minutes=1)

_HELD = Prepared(
    lambda given: User.objects.select_for_update(no_key=True).filter(pk=given.pk).values_list("pk")
)


def check_messages(actor: User, *, now: datetime | None = None) -> None:
    """Raise `TooMany` when the person has sent as many messages as she may within a minute.

    In the transaction that will store the next one: it holds the person's row, so that two sent at
    once are counted one after the other. AGENTSITE_MESSAGES_PER_MINUTE is the limit; 0 is none.
    """
    if settings.AGENTSITE_MESSAGES_PER_MINUTE:
        _HELD.first(pk=actor.pk)
        require_room(actor, now=now)


def require_room(actor: User, *, now: datetime | None = None) -> None:
    """The same without holding anything: asked before something dear is done for a message."""
    limit = settings.AGENTSITE_MESSAGES_PER_MINUTE
    if not limit:
        return
    now = now or timezone.now()
    in_the_way = _oldest_of(limit).first(actor=actor.pk, since=now - WINDOW)
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


@cache
def _oldest_of(limit: int) -> Prepared[tuple[datetime]]:
    """Of a person's newest `limit` messages the oldest, which must grow old before there is room for
    one more."""
    return Prepared(
        lambda given: (
            Event.objects.filter(actor=given.actor, type="user.message", created_at__gt=given.since)
            .order_by("-created_at")
            .values_list("created_at")[limit - 1 : limit]
        )
    )
