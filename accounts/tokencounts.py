"""What a new token has used up already: a new secret is no new quota.

One that replaces another goes on with its count, and so does one made where a person and her service
accounts used as many tokens today as they may have. Counting is `api.throttling`'s.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.conf import settings
from django.utils import timezone

from accounts.models import ApiToken, Organisation, User
from accounts.persons import sharing_place, whose_place


def take_counts_over(
    *, holder: User, organisation: Organisation, replaced: ApiToken | None = None
) -> dict[str, Any]:
    """The columns with which a further token begins; an ended one that gave them has none left.

    `replaced` is stored as it will be. Whoever takes a further place holds the lock of its room.
    """
    sources = [] if replaced is None else [replaced]
    if replaced is None or replaced.is_valid:
        sources += _ended_in_whose_place(holder, organisation)
    used_up = [source for source in sources if not source.is_valid]
    ApiToken.objects.filter(pk__in=[one.pk for one in used_up]).update(day_requests=0)
    day, requests = max(
        ((one.day, one.day_requests) for one in sources if one.day is not None),
        default=(None, 0),
    )
    return {
        "reads_until": max((one.reads_until for one in sources), default=0),
        "writes_until": max((one.writes_until for one in sources), default=0),
        "day": day,
        "day_requests": requests,
    }


def _ended_in_whose_place(holder: User, organisation: Organisation) -> list[ApiToken]:
    """The least used of those that ended today; none while fewer were used than one may have."""
    now = timezone.now()
    today = now.astimezone(UTC).date()
    sharing = sharing_place(whose_place(holder))
    held = ApiToken.objects.filter(user__in=sharing, organisation=organisation)
    valid = held.valid_at(now)
    ended = held.filter(day__gte=today, day_requests__gt=0).exclude(pk__in=valid.values("pk"))
    if valid.count() + ended.count() < settings.AGENTSITE_TOKENS_PER_PERSON:
        return []
    return list(ended.order_by("day_requests")[:1])
