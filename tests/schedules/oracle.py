"""Due times by brute force: every minute of a span of UTC is asked whether it is due, by rules written here
anew from the words of Debian's cron(8). Slow, and shares nothing with what it judges."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
NAMES = {
    3: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    4: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
}


def number(text: str, place: int) -> int:
    if text.isdigit():
        return int(text)
    return NAMES[place].index(text.upper()) + (1 if place == 3 else 0)


def meant(text: str, place: int) -> set[int]:
    lowest, highest = RANGES[place]
    found: set[int] = set()
    for item in text.split(","):
        span, _slash, step = item.partition("/")
        first, _dash, last = span.partition("-")
        if span == "*":
            start, end = lowest, min(highest, 6 if place == 4 else highest)
        else:
            start = number(first, place)
            end = number(last, place) if last else (highest if step else start)
        found |= set(range(start, end + 1, int(step or 1)))
    return {0 if place == 4 and value == 7 else value for value in found}


def due_times(expression: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """All of begin < due ≤ end."""
    fields = expression.split()
    minute, hour, day, month, weekday = (meant(text, place) for place, text in enumerate(fields))
    both = fields[2].startswith("*") or fields[4].startswith("*")
    by_elapsed = fields[0].startswith("*") or fields[1].startswith("*")
    place = ZoneInfo(zone)

    def fits(wall: datetime) -> bool:
        if wall.minute not in minute or wall.hour not in hour or wall.month not in month:
            return False
        on_day, on_weekday = wall.day in day, (wall.weekday() + 1) % 7 in weekday
        return (on_day and on_weekday) if both else (on_day or on_weekday)

    found = []
    at = begin
    before = begin.astimezone(place)
    while at < end:
        at += MINUTE
        now = at.astimezone(place)
        due = fits(now) and (by_elapsed or not now.fold)
        if not by_elapsed and not due:
            # What was left out happens now; what comes again does not.
            wall, skipped = now.replace(tzinfo=None), before.replace(tzinfo=None) + MINUTE
            while skipped < wall and not due:
                due = fits(skipped)
                skipped += MINUTE
        if due:
            found.append(at)
        before = now
    return found
