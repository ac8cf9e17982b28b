"""How often one token may be used: a rate for reading, one for changing, and a quota for the day.

Counted in the token's row, so that all processes and doors count together.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, F, Q, When
from django.db.models.functions import Greatest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from rest_framework.throttling import BaseThrottle

from accounts.api.authentication import Caller
from accounts.models import ApiToken
from harness.errors import TooMany
from jobs.prepared import PreparedUpdate

WINDOW = 60.0
"""Seconds in which a whole rate may be used at once; it grows back evenly."""

ANY_NUMBER = 10**9
"""What no count of a day and no number of seconds reaches."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def count_request(token: ApiToken, *, writes: bool, now: float | None = None) -> None:
    """Count one request and note the use; TooMany, with the seconds to wait, if it is one too many.

    One conditional UPDATE decides, so that requests at once cannot both take the last place. A
    refused request is not counted.
    """
    now = time.time() if now is None else now
    moment = datetime.fromtimestamp(now, UTC)
    field = "writes_until" if writes else "reads_until"
    rate = (
        settings.AGENTSITE_API_WRITES_PER_MINUTE
        if writes
        else settings.AGENTSITE_API_READS_PER_MINUTE
    )
    quota = settings.AGENTSITE_API_REQUESTS_PER_DAY
    step = WINDOW / rate if rate else 0.0
    counted = _COUNTED[field].run(
        token=token.pk,
        moment=moment,
        today=moment.date(),
        quota=quota or ANY_NUMBER,
        now=now,
        step=step,
        # Half a step of grace keeps rounding from taking the last request of a full rate.
        latest=now + WINDOW - step / 2 if rate else now + ANY_NUMBER,
    )
    if counted:
        return
    row = ApiToken.objects.filter(pk=token.pk).first()
    if row is None:
        return
    if quota and row.day == moment.date() and row.day_requests >= quota:
        raise _quota_used(quota, moment)
    raise _too_fast(rate, getattr(row, field) + WINDOW / rate / 2 - WINDOW - now)


def _counted(field: str) -> PreparedUpdate:
    """One more request of the kind that `field` is about, if there is room for it."""
    return PreparedUpdate(
        lambda given: ApiToken.objects.filter(
            Q(day=None) | ~Q(day=given.today) | Q(day_requests__lt=given.quota),
            **{"pk": given.token, f"{field}__lte": given.latest},
        ),
        lambda given: {
            "last_used_at": given.moment,
            "day_requests": Case(When(day=given.today, then=F("day_requests") + 1), default=1),
            "day": given.today,
            field: Greatest(F(field), given.now) + given.step,
        },
    )


_COUNTED = {field: _counted(field) for field in ("reads_until", "writes_until")}


class TokenThrottle(BaseThrottle):
    """After authentication and scopes; raises TooMany, which each door renders its own way."""

    def allow_request(self, request: Any, view: Any) -> bool:
        caller = getattr(request, "caller", None)
        if isinstance(caller, Caller):
            count_request(caller.token, writes=request.method not in SAFE)
        return True


def _too_fast(rate: int, seconds: float) -> TooMany:
    wait = max(1, math.ceil(seconds))
    return TooMany(
        ngettext(
            "This token made %(rate)d such request within a minute, which is the most it may.",
            "This token made %(rate)d such requests within a minute, which is the most it may.",
            rate,
        )
        % {"rate": rate},
        hint=ngettext("Try again in %(seconds)d second.", "Try again in %(seconds)d seconds.", wait)
        % {"seconds": wait},
        retry_after=wait,
    )


def _quota_used(quota: int, moment: datetime) -> TooMany:
    midnight = datetime.combine(moment.date() + timedelta(days=1), datetime.min.time(), UTC)
    return TooMany(
        _("This token used up its %(quota)d requests of the day.") % {"quota": quota},
        hint=_("It may be used again after midnight UTC."),
        retry_after=max(1, math.ceil((midnight - moment).total_seconds())),
    )
