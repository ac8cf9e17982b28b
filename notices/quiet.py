"""Quiet hours on the clocks of a time zone. Pure; which are whose says `NoticeWish`."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_NO_PLACES = {"localtime", "posixrules", "Factory"}


@lru_cache(maxsize=1)
def known_zones() -> frozenset[str]:
    """The IANA names this machine knows."""
    return frozenset(available_timezones() - _NO_PLACES)


def quiet_end(
    moment: datetime, begin: time | None, end: time | None, *, zone: str
) -> datetime | None:
    """When the quiet hours end in which `moment` (of UTC) is; None where it is in none. They may begin on
    one day and end on the next; those that end when they begin are none."""
    if begin is None or end is None or begin == end:
        return None
    place = _place(zone)
    local = moment.astimezone(place)
    clock, day = local.time(), local.date()
    if begin < end:
        inside = begin <= clock < end
    else:
        inside = clock >= begin or clock < end
        if clock >= begin:
            day += timedelta(days=1)
    if not inside:
        return None
    ends = datetime.combine(day, end, tzinfo=place).astimezone(UTC)
    # An hour that comes twice in autumn may end behind us.
    return max(ends, moment + timedelta(minutes=1))


def _place(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")  # this machine's table lost it since it was chosen
