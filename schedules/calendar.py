"""The next two weeks of somebody's schedules, day by day on her clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import islice, takewhile

from django.utils import timezone

from .models import StandingOrder

DAYS = 14
MOST_A_DAY = 3
"""Times of one schedule on one day that are written out."""
MOST_TIMES = 600
"""Times of one schedule that are looked at; denser ones are said to go on."""


@dataclass(slots=True)
class Entry:
    """One schedule on one day."""

    order: StandingOrder
    times: list[datetime] = field(default_factory=list)
    more: int = 0


@dataclass(slots=True)
class Day:
    day: date
    entries: list[Entry] = field(default_factory=list)


def two_weeks(orders: Iterable[StandingOrder], now: datetime) -> list[Day]:
    """Those in force, each day's by their first time. Times are local to the current time zone."""
    today = timezone.localtime(now).date()
    days = {today + timedelta(days=n): Day(today + timedelta(days=n)) for n in range(DAYS)}
    end = now + timedelta(days=DAYS)
    for order in orders:
        if order.paused_at is not None or order.archived_at is not None:
            continue
        coming = takewhile(lambda due: due <= end, order.timing.after(max(now, order.handled_at)))
        for due in islice(coming, MOST_TIMES):
            local = timezone.localtime(due)
            day = days.get(local.date())
            if day is None:
                continue
            if not day.entries or day.entries[-1].order is not order:
                day.entries.append(Entry(order))
            entry = day.entries[-1]
            if len(entry.times) < MOST_A_DAY:
                entry.times.append(local)
            else:
                entry.more += 1
    for day in days.values():
        day.entries.sort(key=lambda entry: entry.times[0])
    return list(days.values())
